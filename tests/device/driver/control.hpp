#pragma once
// Functions that the simulated driver has beside those of CUDA: for kernels, which say what memory
// they use, and for programs that look at modelled time.

#include <cstddef>
#include <cstdint>

#define ANYCCL_SIMULATED_EXPORT extern "C" __attribute__((visibility("default")))

/// The place of memory of a device, or of pinned memory, as a kernel may use it; null if it is
/// neither, and then the device is lost. The bytes count for the time that the kernel takes.
ANYCCL_SIMULATED_EXPORT void* anyccl_sim_place(const void* address, std::size_t bytes, int writes);
/// The kernel has written, or has seen, what a word of pinned memory tells of.
ANYCCL_SIMULATED_EXPORT void anyccl_sim_kernel_wrote(const void* word, std::uint32_t value);
ANYCCL_SIMULATED_EXPORT void anyccl_sim_kernel_saw(const void* word, std::uint32_t value);
/// A kernel that waits for others must give up when this is not 0.
ANYCCL_SIMULATED_EXPORT int anyccl_sim_is_lost();

/// Modelled time of the calling thread, in nanoseconds.
ANYCCL_SIMULATED_EXPORT double anyccl_sim_time();
/// All clocks start anew. No work may be under way.
ANYCCL_SIMULATED_EXPORT void anyccl_sim_reset();
/// The calling thread goes on from a time that another thread had; below 0: from 0.
ANYCCL_SIMULATED_EXPORT void anyccl_sim_catch_up(double time);
/// The calling thread has seen, or has written, a pinned word that streams write or wait for.
ANYCCL_SIMULATED_EXPORT void anyccl_sim_saw(const void* word, std::uint32_t value);
ANYCCL_SIMULATED_EXPORT void anyccl_sim_wrote(const void* word, std::uint32_t value);
