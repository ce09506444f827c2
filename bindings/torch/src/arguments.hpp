#pragma once
// Checks of an operation's tensors and of their overlaps, in Gloo's words where programs know them.

#include "backend.hpp"

namespace anyccl::torch {

/// Elements, as the library counts them.
std::size_t units(const at::Tensor& tensor);
/// For operations with one tensor per rank on this side.
const at::Tensor& single_input(const Job& job, at::TensorList tensors);
const at::Tensor& single_output(const Job& job, at::TensorList tensors);
/// This rank's entry in the list is as large as `tensor`.
void check_size(const Job& job, at::TensorList list, const at::Tensor& tensor, int rank);
/// They pass check_tensor(), and are of one type.
void check_pair(const Job& job, const at::Tensor& output, const at::Tensor& input);

/// Memory of `input`, not overlapping `written` (unless it is exactly `in_place`).
const void* input_apart_from(Memory& memory, const at::Tensor& input, const void* written,
                             std::size_t written_bytes, const void* in_place);
/// Memory of `input`, where the written memory is blocks, of which number `mine` may be the input.
const void* input_apart_from(Memory& memory, const at::Tensor& input, const Memory::Blocks& blocks,
                             std::size_t unit, std::size_t mine);

}  // namespace anyccl::torch
