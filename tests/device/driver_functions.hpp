#pragma once
// The driver as a program finds it: libcuda.so.1, which must be the simulated one here.

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "platform/device/cuda/driver_api.hpp"

namespace anyccl::test {

inline void* driver_library() {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library != nullptr && dlsym(library, "anyccl_sim_time") != nullptr) return library;
  const char* const why = library == nullptr ? dlerror() : "libcuda.so.1 is not the simulated one";
  std::fprintf(stderr, "%s\n", why);
  std::abort();
}

template <typename Function>
Function* driver_function(const char* name) {
  auto* const found = reinterpret_cast<Function*>(dlsym(driver_library(), name));
  if (found != nullptr) return found;
  std::fprintf(stderr, "libcuda.so.1 has no %s\n", name);
  std::abort();
}

/// All functions of both tables.
struct DriverFunctions {
#define ANYCCL_MEMBER(name, parameters) \
  cuda::Error(*name) parameters = driver_function<cuda::Error parameters>(#name);
  ANYCCL_CUDA_FUNCTIONS(ANYCCL_MEMBER)
  ANYCCL_MORE_CUDA_FUNCTIONS(ANYCCL_MEMBER)
#undef ANYCCL_MEMBER
};

inline const DriverFunctions& driver() {
  static const DriverFunctions functions;
  return functions;
}

}  // namespace anyccl::test
