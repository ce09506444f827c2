#pragma once
// Modelled time, in nanoseconds, over all processes of the machine: engines are busy for intervals,
// and words remember when they got their last values.

#include <cstdint>

namespace anyccl::simulated {

enum class Engine : int {
  out,      ///< Copies to the host.
  in,       ///< Copies from the host.
  compute,  ///< Kernels, and copies within a device.
};

/// The end of something that takes `duration` on an engine and is ready at `ready`: it gets the
/// first gap, so that the order of real execution hardly matters.
double reserve(int device, Engine engine, double ready, double duration);
/// A word, known by its file and the place in it in all processes, gets a value.
void stamp(std::uint64_t word, std::uint32_t value, double time);
/// When it was at least `value` (cyclically) for the first time; 0 if that is not known.
double stamped(std::uint64_t word, std::uint32_t value);
void forget_times();

}  // namespace anyccl::simulated
