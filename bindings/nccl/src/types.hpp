#pragma once
// Types of elements and operators: NCCL's are the first of anyccl's, with the same numbers.

#include <string>

#include "anyccl/anyccl.h"
#include "nccl.h"
#include "results.hpp"

namespace anyccl::nccl {

static_assert(int{anycclFloat8e5m2} + 1 == int{ncclNumTypes} &&
              int{anycclAvg} + 1 == int{ncclNumOps});

inline anycclDataType_t to_anyccl(ncclDataType_t type) {
  return static_cast<anycclDataType_t>(type);
}
inline anycclRedOp_t to_anyccl(ncclRedOp_t op) {
  return static_cast<anycclRedOp_t>(op);
}

/// Errors, kept for `comm`: invalid argument for a type that NCCL does not have.
inline ncclResult_t check(ncclDataType_t type, ncclComm_t comm) {
  if (type < ncclNumTypes) return ncclSuccess;
  return refuse(
      comm, ncclInvalidArgument,
      "datatype " + std::to_string(static_cast<int>(type)) + " does not exist: types are 0 to 11");
}

/// Errors, kept for `comm`: invalid argument for an operator that NCCL does not have, and anyccl
/// has. Those that programs create have larger numbers, which anyccl knows.
inline ncclResult_t check(ncclRedOp_t op, ncclComm_t comm) {
  const int number = static_cast<int>(op);
  if (number < int{ncclNumOps} || number >= int{anycclNumOps}) return ncclSuccess;
  return refuse(comm, ncclInvalidArgument,
                "operator " + std::to_string(number) +
                    " was not created for this communicator: there are 0 to 4, and those that "
                    "ncclRedOpCreatePreMulSum makes");
}

}  // namespace anyccl::nccl
