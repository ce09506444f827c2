// Operators that programs create.

#include "driver.hpp"
#include "handles.hpp"
#include "second_name.hpp"
#include "types.hpp"

using namespace anyccl::nccl;

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t datatype,
                                      ncclScalarResidence_t residence, ncclComm_t comm) {
  if (const ncclResult_t found = check(datatype, comm); found != ncclSuccess) return found;
  if (residence == ncclScalarDevice && is_memory_of_device(scalar))
    return refuse(comm, ncclInvalidUsage,
                  "scalar is memory of a device, which the host cannot read: use "
                  "ncclScalarHostImmediate");
  anycclRedOp_t made = anycclSum;
  const ncclResult_t result = passed_on(
      anycclRedOpCreatePreMulSum(op == nullptr ? nullptr : &made, scalar, to_anyccl(datatype),
                                 static_cast<anycclScalarResidence_t>(residence), to_anyccl(comm)));
  if (result == ncclSuccess) *op = static_cast<ncclRedOp_t>(made);
  return result;
}
ANYCCL_SECOND_NAME(ncclRedOpCreatePreMulSum);

ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm) {
  if (const ncclResult_t found = check(op, comm); found != ncclSuccess) return found;
  return passed_on(anycclRedOpDestroy(to_anyccl(op), to_anyccl(comm)));
}
ANYCCL_SECOND_NAME(ncclRedOpDestroy);
