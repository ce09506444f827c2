#include "arguments.hpp"

namespace anyccl::torch {

std::size_t units(const at::Tensor& tensor) {
  return static_cast<std::size_t>(tensor.numel()) * element_of(tensor.scalar_type()).units;
}

const at::Tensor& single_input(const Job& job, at::TensorList tensors) {
  if (tensors.size() != 1) refuse(job.name(), "requires a single-element input tensor list");
  check_tensor(job.name(), tensors[0]);
  return tensors[0];
}

const at::Tensor& single_output(const Job& job, at::TensorList tensors) {
  if (tensors.size() != 1) refuse(job.name(), "requires a single-element output tensor list");
  check_tensor(job.name(), tensors[0]);
  return tensors[0];
}

void check_size(const Job& job, at::TensorList list, const at::Tensor& tensor, int rank) {
  const auto index = static_cast<std::size_t>(rank);
  if (list[index].numel() != tensor.numel())
    c10d::assertSizesMatch([&](const std::string& text) { refuse(job.name(), text); },
                           tensor.sizes(), list, index);
}

void check_pair(const Job& job, const at::Tensor& output, const at::Tensor& input) {
  check_tensor(job.name(), output);
  check_tensor(job.name(), input);
  if (output.scalar_type() != input.scalar_type())
    C10_THROW_ERROR(TypeError, std::string("anyccl: ") + job.name() +
                                   ": output tensor must have the same type as input tensor");
}

const void* input_apart_from(Memory& memory, const at::Tensor& input, const void* written,
                             std::size_t written_bytes, const void* in_place) {
  const void* const direct = memory.input(input);
  if (direct == in_place || !overlap(direct, input.nbytes(), written, written_bytes)) return direct;
  return memory.copied_input(input);
}

const void* input_apart_from(Memory& memory, const at::Tensor& input, const Memory::Blocks& blocks,
                             std::size_t unit, std::size_t mine) {
  const void* const direct = memory.input(input);
  for (std::size_t r = 0; r < blocks.counts.size(); ++r) {
    const void* const block = blocks.base + blocks.displs[r] * unit;
    if (r == mine && block == direct) continue;
    if (overlap(direct, input.nbytes(), block, blocks.counts[r] * unit))
      return memory.copied_input(input);
  }
  return direct;
}

}  // namespace anyccl::torch
