#include "streams.hpp"

#include "anyccl/device.h"

namespace anyccl::nccl {

ncclResult_t CallStream::open(ncclComm_t comm, cudaStream_t native) {
  int device = ANYCCL_NO_DEVICE;
  const ncclResult_t found = passed_on(anycclCommGetDevice(to_anyccl(comm), &device));
  if (found != ncclSuccess) return found;
  if (device != ANYCCL_NO_DEVICE) return passed_on(anycclStreamWrap(&stream_, device, native));
  if (native == nullptr) return ncclSuccess;
  return refuse(comm, ncclInvalidArgument,
                "stream is not NULL, and the communicator has no device: it was created in a "
                "thread that used none");
}

}  // namespace anyccl::nccl
