#pragma once
// The functions of the simulated driver, to which the extension is linked.

#include "platform/device/cuda/driver_api.hpp"

#define SIMULATED_DECLARE(name, parameters) extern "C" anyccl::cuda::Error name parameters;
ANYCCL_CUDA_FUNCTIONS(SIMULATED_DECLARE)
ANYCCL_MORE_CUDA_FUNCTIONS(SIMULATED_DECLARE)
#undef SIMULATED_DECLARE
