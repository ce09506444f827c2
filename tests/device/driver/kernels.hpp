#pragma once
// Kernels are functions of a library that is compiled for the host (kernel.hpp).

#include <string>

#include "platform/device/cuda/driver_api.hpp"

namespace anyccl::simulated {

/// Looks in SIMULATED_CUDA_KERNELS, or else in the program, and then in the driver; null if there
/// is none of this name.
cuda::Function find_kernel(const std::string& name);
cuda::Error launch(cuda::Function kernel, unsigned blocks, cuda::Stream stream, const void* args);

}  // namespace anyccl::simulated
