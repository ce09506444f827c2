#include "driver.hpp"

#include <dlfcn.h>

#include <bit>
#include <cstdint>

namespace anyccl::nccl {
namespace {

using Address = unsigned long long;  // CUdeviceptr

constexpr int kNotInitialized = 3;   // CUDA_ERROR_NOT_INITIALIZED
constexpr int kMemoryType = 2;       // CU_POINTER_ATTRIBUTE_MEMORY_TYPE
constexpr unsigned int kDevice = 2;  // CU_MEMORYTYPE_DEVICE

/// Calls a function of the driver, if the program has loaded that and it has the function.
template <typename... Parameters>
int call_driver(const char* name, Parameters... parameters) {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return kNotInitialized;
  const auto function = reinterpret_cast<int (*)(Parameters...)>(dlsym(library, name));
  const int error = function == nullptr ? kNotInitialized : function(parameters...);
  dlclose(library);  // it counts users, and the program stays one
  return error;
}

Address address_of(const void* memory) {
  return reinterpret_cast<std::uintptr_t>(memory);
}

}  // namespace

bool uses_device() {
  void* context = nullptr;
  return call_driver("cuCtxGetCurrent", &context) == 0 && context != nullptr;
}

int allocate_on_device(void** place, std::size_t bytes) {
  Address address = 0;
  const int error = call_driver("cuMemAlloc_v2", &address, bytes);
  if (error == 0) *place = std::bit_cast<void*>(address);
  return error;
}

int free_on_device(void* memory) {
  return call_driver("cuMemFree_v2", address_of(memory));
}

bool is_memory_of_device(const void* memory) {
  unsigned int type = 0;  // stays 0 for memory that the driver does not know
  int attribute = kMemoryType;
  void* value = &type;
  return memory != nullptr &&
         call_driver("cuPointerGetAttributes", 1U, &attribute, &value, address_of(memory)) == 0 &&
         type == kDevice;
}

}  // namespace anyccl::nccl
