// Operations on lists of tensors: each tensor is a block, which is used in place wherever that is
// possible. Ranks may lay them out differently, so these are always v-forms.

#include "arguments.hpp"
#include "backend.hpp"

namespace anyccl::torch {

using c10d::OpType;

namespace {

/// `blocks` get the inputs of all ranks; `input` is that of `rank`, this one.
void gather_into(Job& job, anycclCall_t& call, const Memory::Blocks& blocks,
                 const at::Tensor& input, int rank) {
  call.count = units(input);
  call.recvbuff = blocks.base;
  call.recvcounts = blocks.counts.data();
  call.rdispls = blocks.displs.data();
  call.sendbuff = input_apart_from(job.memory, input, blocks, element_of(input.scalar_type()).bytes,
                                   static_cast<std::size_t>(rank));
}

}  // namespace

Backend::WorkPtr Backend::allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                                    const c10d::AllgatherOptions& opts) {
  Job job = this->job("anyccl:all_gather", OpType::ALLGATHER, opts);
  if (inputs.empty()) refuse(job.name(), "requires non-empty input tensor list");
  if (inputs.size() != outputs.size())
    refuse(job.name(), "requires input/output tensor lists to have the same length");
  const at::Tensor& input = single_input(job, inputs);
  const Tensors& blocks_of = outputs[0];
  if (blocks_of.size() != ranks())
    refuse(job.name(), "invalid output tensor list at index 0 (expected length " +
                           std::to_string(size_) + ", got " + std::to_string(blocks_of.size()) +
                           ")");
  check_tensors(job.name(), blocks_of, input.options());
  check_size(job, blocks_of, input, rank_);
  anycclCall_t& call = job.add_call(anycclCollAllGatherv, input.scalar_type());
  const Memory::Blocks blocks = job.memory.outputs(blocks_of);
  gather_into(job, call, blocks, input, rank_);
  return start(job, inputs, blocks_of);
}

Backend::WorkPtr Backend::allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                                              const c10d::AllgatherOptions& opts) {
  Job job = this->job("anyccl:all_gather", OpType::ALLGATHER_COALESCED, opts);
  if (inputs.empty()) refuse(job.name(), "requires non-empty input tensor list");
  if (outputs.size() != ranks()) refuse(job.name(), "output lists should be equal to world size");
  for (const Tensors& of_rank : outputs)
    if (of_rank.size() != inputs.size())
      refuse(job.name(), "invalid output size: (expected length " + std::to_string(inputs.size()) +
                             ", got " + std::to_string(of_rank.size()) + ")");
  std::vector<Memory::Blocks> all;
  all.reserve(inputs.size());  // calls point into them
  Tensors flat;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const at::Tensor& input = inputs[i];
    check_tensor(job.name(), input);
    Tensors blocks_of;
    for (const Tensors& of_rank : outputs) blocks_of.push_back(of_rank[i]);
    check_tensors(job.name(), blocks_of, input.options());
    for (std::size_t r = 0; r < blocks_of.size(); ++r)
      c10d::assertSizesMatch([&](const std::string& text) { refuse(job.name(), text); },
                             input.sizes(), blocks_of, r);
    anycclCall_t& call = job.add_call(anycclCollAllGatherv, input.scalar_type());
    const Memory::Blocks& blocks = all.emplace_back(job.memory.outputs(blocks_of));
    gather_into(job, call, blocks, input, rank_);
    flat.insert(flat.end(), blocks_of.begin(), blocks_of.end());
  }
  return start(job, inputs, flat);
}

Backend::WorkPtr Backend::gather(std::vector<Tensors>& outputs, Tensors& inputs,
                                 const c10d::GatherOptions& opts) {
  Job job = this->job("anyccl:gather", OpType::GATHER, opts);
  check_root(job, opts.rootRank);
  const at::Tensor& input = single_input(job, inputs);
  anycclCall_t& call = job.add_call(anycclCollGatherv, input.scalar_type());
  call.root = static_cast<int>(opts.rootRank);
  call.count = units(input);
  if (call.root != rank_) {
    if (!outputs.empty()) refuse(job.name(), "requires empty output on non-root");
    call.sendbuff = job.memory.input(input);
    return start(job, inputs, {});
  }
  if (outputs.size() != 1)
    refuse(job.name(), "requires a single-element output list containing a list with " +
                           std::to_string(size_) + " tensors.");
  const Tensors& blocks_of = outputs[0];
  if (blocks_of.size() != ranks())
    refuse(job.name(), "Incorrect output list size " + std::to_string(blocks_of.size()) +
                           ". Output list size should be " + std::to_string(size_) +
                           ", same as size of the process group.");
  check_tensors(job.name(), blocks_of, input.options());
  check_size(job, blocks_of, input, rank_);
  const Memory::Blocks blocks = job.memory.outputs(blocks_of);
  gather_into(job, call, blocks, input, rank_);
  return start(job, inputs, blocks_of);
}

Backend::WorkPtr Backend::scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                  const c10d::ScatterOptions& opts) {
  Job job = this->job("anyccl:scatter", OpType::SCATTER, opts);
  check_root(job, opts.rootRank);
  const at::Tensor& output = single_output(job, outputs);
  anycclCall_t& call = job.add_call(anycclCollScatterv, output.scalar_type());
  call.root = static_cast<int>(opts.rootRank);
  call.count = units(output);
  call.recvbuff = job.memory.output(output);
  if (call.root != rank_) {
    if (!inputs.empty()) refuse(job.name(), "requires empty input on non-root");
    return start(job, {}, outputs);
  }
  if (inputs.size() != 1)
    refuse(job.name(), "requires a single-element input list containing a list with " +
                           std::to_string(size_) + " tensors");
  const Tensors& blocks_of = inputs[0];
  if (blocks_of.size() != ranks())
    refuse(job.name(), "Incorrect input list size " + std::to_string(blocks_of.size()) +
                           ". Input list size should be " + std::to_string(size_) +
                           ", same as size of the process group.");
  check_tensors(job.name(), blocks_of, output.options());
  check_size(job, blocks_of, output, rank_);
  Memory::Blocks blocks = job.memory.inputs(blocks_of);
  separate_output(job, output, call, blocks);
  call.sendbuff = blocks.base;
  call.sendcounts = blocks.counts.data();
  call.sdispls = blocks.displs.data();
  return start(job, blocks_of, outputs);
}

Backend::WorkPtr Backend::reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                         const c10d::ReduceScatterOptions& opts) {
  Job job = this->job("anyccl:reduce_scatter", OpType::REDUCE_SCATTER, opts);
  const at::Tensor& output = single_output(job, outputs);
  if (inputs.size() != 1 || inputs[0].size() != ranks())
    refuse(job.name(), "invalid input tensor list at index 0 (expected length " +
                           std::to_string(size_) + ", got " +
                           std::to_string(inputs.empty() ? 0 : inputs[0].size()) + ")");
  const Tensors& blocks_of = inputs[0];
  check_tensors(job.name(), blocks_of, output.options());
  check_size(job, blocks_of, output, rank_);
  anycclCall_t& call = job.add_call(anycclCollReduceScatterv, output.scalar_type());
  set_operator(job, opts.reduceOp, output.scalar_type());
  Memory::Blocks blocks = job.memory.inputs(blocks_of);
  call.recvbuff = job.memory.output(output);
  separate_output(job, output, call, blocks);
  call.count = units(output);
  call.sendbuff = blocks.base;
  call.sendcounts = blocks.counts.data();
  call.sdispls = blocks.displs.data();
  return start(job, blocks_of, outputs);
}

/// If `output` overlaps a block that others read, but is not this rank's own one, it is written by
/// way of a temporary.
void Backend::separate_output(Job& job, const at::Tensor& output, anycclCall_t& call,
                              const Memory::Blocks& blocks) {
  const std::size_t unit = element_of(output.scalar_type()).bytes;
  for (std::size_t r = 0; r < ranks(); ++r) {
    const void* const block = blocks.base + blocks.displs[r] * unit;
    if (static_cast<int>(r) == rank_ && block == call.recvbuff) continue;
    if (!overlap(call.recvbuff, output.nbytes(), block, blocks.counts[r] * unit)) continue;
    call.recvbuff = job.memory.copied_output(output);
    return;
  }
}

Backend::WorkPtr Backend::alltoall(Tensors& outputs, Tensors& inputs,
                                   const c10d::AllToAllOptions& opts) {
  Job job = this->job("anyccl:all_to_all", OpType::ALLTOALL, opts);
  if (inputs.size() != ranks() || outputs.size() != ranks())
    refuse(job.name(), "requires as many input and output tensors as there are ranks, " +
                           std::to_string(size_) + ", got " + std::to_string(inputs.size()) +
                           " and " + std::to_string(outputs.size()));
  check_tensor(job.name(), inputs[0]);
  check_tensors(job.name(), inputs, inputs[0].options());
  check_tensors(job.name(), outputs, inputs[0].options());
  const std::size_t unit = element_of(inputs[0].scalar_type()).bytes;
  const Memory::Blocks to = job.memory.outputs(outputs);
  Tensors apart_inputs;
  for (const at::Tensor& input : inputs) {
    bool overlaps = false;
    if (is_plain(input))
      for (std::size_t r = 0; r < ranks(); ++r)
        overlaps |= overlap(input.const_data_ptr(), input.nbytes(), to.base + to.displs[r] * unit,
                            to.counts[r] * unit);
    if (overlaps) static_cast<void>(job.memory.copied_input(input));
    apart_inputs.push_back(overlaps ? job.memory.temporaries().back() : input);
  }
  const Memory::Blocks from = job.memory.inputs(apart_inputs);
  anycclCall_t& call = job.add_call(anycclCollAllToAllv, inputs[0].scalar_type());
  call.sendbuff = from.base;
  call.sendcounts = from.counts.data();
  call.sdispls = from.displs.data();
  call.recvbuff = to.base;
  call.recvcounts = to.counts.data();
  call.rdispls = to.displs.data();
  return start(job, inputs, outputs);
}

}  // namespace anyccl::torch
