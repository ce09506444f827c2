#pragma once
// All exported functions begin with ANYCCL_SIMULATED_ENTER. Their declarations are generated from
// the table, so that a definition with other parameters does not compile.

#include <cstdint>

#include "platform/device/cuda/driver_api.hpp"

#define ANYCCL_SIMULATED_DECLARE(name, parameters) \
  extern "C" __attribute__((visibility("default"))) anyccl::cuda::Error name parameters;
ANYCCL_CUDA_FUNCTIONS(ANYCCL_SIMULATED_DECLARE)
ANYCCL_MORE_CUDA_FUNCTIONS(ANYCCL_SIMULATED_DECLARE)
#undef ANYCCL_SIMULATED_DECLARE

namespace anyccl::simulated {

/// A call is refused unless there is this.
enum class Needs : std::uint8_t {
  nothing,
  driver,   ///< cuInit() was called, by this process and not by one that it was forked from.
  device,   ///< Besides, no device is lost, and no stream has called this function of the host.
  context,  ///< Besides, the thread has a current context.
};

/// Traces and counts the call, and says whether it can begin.
cuda::Error enter(const char* name, Needs needs, cuda::Error on_fault);

/// cuInit() calls it.
void initialise();
/// Whether a stream has called the function of the host that this thread is in.
bool& is_in_host_function();

}  // namespace anyccl::simulated

/// Returns from an exported function that cannot begin; `on_fault` is its error by
/// SIMULATED_CUDA_FAIL.
#define ANYCCL_SIMULATED_ENTER(needs, on_fault)                                          \
  if (const anyccl::cuda::Error refused =                                                \
          anyccl::simulated::enter(__func__, anyccl::simulated::Needs::needs, on_fault); \
      refused != anyccl::cuda::kSuccess)                                                 \
  return refused
