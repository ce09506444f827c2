#pragma once
// The CUDA driver, if it is there at run time.

#include "anyccl/status.hpp"
#include "platform/device/cuda/driver_api.hpp"

namespace anyccl::cuda {

/// Its functions, by their names.
struct Driver {
#define ANYCCL_MEMBER(name, parameters) Error(*name) parameters = nullptr;
  ANYCCL_CUDA_FUNCTIONS(ANYCCL_MEMBER)
#undef ANYCCL_MEMBER

  /// Ok, or a device_error with the name of the function and the driver's name and words for
  /// `code`.
  Status check(Error code, const char* function) const;
};

/// Loads libcuda.so.1, once. Errors: unsupported, if there is none, it is too old or has no device.
Result<const Driver*> load_driver();

/// The context that is current in this thread; null: none, or the process has not loaded the
/// driver. Loads and starts nothing.
Context current_context();

}  // namespace anyccl::cuda
