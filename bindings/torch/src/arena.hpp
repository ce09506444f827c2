#pragma once

#include <cstddef>

namespace anyccl::torch {

/// From now on CPU tensors of at least `least_bytes` get memory that local peers can read where it
/// lies; smaller ones, and those for which there is none, get what they got before. Any thread.
void enable_arena(std::size_t least_bytes);
/// New tensors get what they got before; those that there are stay as they are.
void disable_arena();

}  // namespace anyccl::torch
