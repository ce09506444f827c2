#pragma once

#include <cstddef>

namespace anyccl::torch {

/// From now on CPU tensors of at least `least_bytes` get memory that local peers can read in
/// place; smaller ones, and those for which there is none, get ordinary memory. Any thread.
void enable_arena(std::size_t least_bytes);
/// New tensors get ordinary memory again; existing ones stay as they are.
void disable_arena();

}  // namespace anyccl::torch
