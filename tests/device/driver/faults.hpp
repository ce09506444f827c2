#pragma once
// SIMULATED_CUDA_FAIL makes calls and work fail, and SIMULATED_CUDA_CHAOS makes work come late.
// Nothing here orders one thread after another, or ThreadSanitizer would overlook races of the
// program.

#include <cstdint>
#include <string_view>

namespace anyccl::simulated {

/// Counts a call, or a piece of work, and says whether SIMULATED_CUDA_FAIL lets this one go wrong.
bool strikes(std::string_view name);

/// From then on no work is done, and every call that needs a device fails.
void lose_device();
bool is_lost();

std::uint64_t random_bits();
/// Whether work is delayed and cut up at random.
bool is_chaotic();
/// Waits at random, if so.
void dither();

}  // namespace anyccl::simulated
