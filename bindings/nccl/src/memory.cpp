// Memory.

#include <string>

#include "driver.hpp"
#include "handles.hpp"
#include "results.hpp"
#include "second_name.hpp"

using namespace anyccl::nccl;

ncclResult_t ncclMemAlloc(void** ptr, size_t size) {
  if (ptr == nullptr || !uses_device()) return passed_on(anycclMemAlloc(ptr, size));
  *ptr = nullptr;
  const int error = size == 0 ? 0 : allocate_on_device(ptr, size);
  if (error == 0) return ncclSuccess;
  return refuse(
      nullptr, ncclUnhandledCudaError,
      "cuMemAlloc of " + std::to_string(size) + " bytes: CUDA error " + std::to_string(error));
}
ANYCCL_SECOND_NAME(ncclMemAlloc);

ncclResult_t ncclMemFree(void* ptr) {
  if (!is_memory_of_device(ptr)) return passed_on(anycclMemFree(ptr));
  const int error = free_on_device(ptr);
  if (error == 0) return ncclSuccess;
  return refuse(nullptr, ncclUnhandledCudaError, "cuMemFree: CUDA error " + std::to_string(error));
}
ANYCCL_SECOND_NAME(ncclMemFree);

ncclResult_t ncclCommRegister(const ncclComm_t comm, void* buff, size_t size, void** handle) {
  return passed_on(anycclCommRegister(to_anyccl(comm), buff, size, handle));
}
ANYCCL_SECOND_NAME(ncclCommRegister);

ncclResult_t ncclCommDeregister(const ncclComm_t comm, void* handle) {
  return passed_on(anycclCommDeregister(to_anyccl(comm), handle));
}
ANYCCL_SECOND_NAME(ncclCommDeregister);
