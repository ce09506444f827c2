#include "backend.hpp"

namespace anyccl::torch {
namespace {

using c10d::OpType;

std::size_t units(const at::Tensor& tensor) {
  return static_cast<std::size_t>(tensor.numel()) * element_of(tensor.scalar_type()).units;
}

/// For operations with one tensor per rank on this side.
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

/// What rank r gets or gives has as many elements as it says itself; `tensor` is of this rank.
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

/// Memory of `input`, not overlapping `written` (unless it is exactly `in_place`).
const void* apart(Memory& memory, const at::Tensor& input, const void* written,
                  std::size_t written_bytes, const void* in_place) {
  const void* const direct = memory.input(input);
  if (direct == in_place || !overlap(direct, input.nbytes(), written, written_bytes)) return direct;
  return memory.copied_input(input);
}

/// The same where what is written lies in pieces.
const void* apart(Memory& memory, const at::Tensor& input, const Memory::Pieces& pieces,
                  std::size_t unit, std::size_t mine) {
  const void* const direct = memory.input(input);
  for (std::size_t r = 0; r < pieces.counts.size(); ++r) {
    const void* const piece = pieces.base + pieces.displs[r] * unit;
    if (r == mine && piece == direct) continue;
    if (overlap(direct, input.nbytes(), piece, pieces.counts[r] * unit))
      return memory.copied_input(input);
  }
  return direct;
}

}  // namespace

void Backend::check_root(const Job& job, std::int64_t root) const {
  if (root < 0 || root >= size_) refuse(job.name(), "invalid root rank: " + std::to_string(root));
}

void Backend::reduce_by(Job& job, const c10d::ReduceOp& op, c10::ScalarType type) {
  if (op.op_ == c10d::ReduceOp::PREMUL_SUM)
    job.factor = factor_of(job.name(), op, type);
  else
    job.calls.back().op = operator_of(job.name(), op, type);
}

Backend::Works Backend::broadcast(Tensors& tensors, const c10d::BroadcastOptions& opts) {
  Job job = this->job("anyccl:broadcast", OpType::BROADCAST, opts);
  const at::Tensor& tensor = check_single(job.name(), tensors);
  check_root(job, opts.rootRank);
  if (opts.rootTensor != 0)
    refuse(job.name(), "invalid root tensor: " + std::to_string(opts.rootTensor));
  anycclCall_t& call = job.call(anycclCollBroadcast, tensor.scalar_type());
  call.root = static_cast<int>(opts.rootRank);
  call.count = units(tensor);
  if (call.root == rank_) {
    call.sendbuff = job.memory.input(tensor);
    call.recvbuff = const_cast<void*>(call.sendbuff);  // in place: it is only read
  } else {
    call.recvbuff = job.memory.output(tensor);
    call.sendbuff = call.recvbuff;
  }
  return start(job, *collectives_, tensors, tensors);
}

Backend::Works Backend::allreduce(Tensors& tensors, const c10d::AllreduceOptions& opts) {
  if (tensors.size() == 1 && tensors[0].defined() && tensors[0].layout() == c10::kSparse)
    return allreduce_sparse(tensors, opts);
  Job job = this->job("anyccl:all_reduce", OpType::ALLREDUCE, opts);
  const at::Tensor& tensor = check_single(job.name(), tensors);
  anycclCall_t& call = job.call(anycclCollAllReduce, tensor.scalar_type());
  reduce_by(job, opts.reduceOp, tensor.scalar_type());
  call.count = units(tensor);
  call.recvbuff = job.memory.both(tensor);
  call.sendbuff = call.recvbuff;
  return start(job, *collectives_, tensors, tensors);
}

Backend::Works Backend::allreduce_coalesced(Tensors& tensors,
                                            const c10d::AllreduceCoalescedOptions& opts) {
  Job job = this->job("anyccl:all_reduce", OpType::ALLREDUCE_COALESCED, opts);
  if (tensors.empty()) refuse(job.name(), "requires non-empty tensor list");
  for (const at::Tensor& tensor : tensors) check_tensor(job.name(), tensor);
  check_tensors(job.name(), tensors, tensors[0].options());
  for (const at::Tensor& tensor : tensors) {
    anycclCall_t& call = job.call(anycclCollAllReduce, tensor.scalar_type());
    reduce_by(job, opts.reduceOp, tensor.scalar_type());
    call.count = units(tensor);
    call.recvbuff = job.memory.both(tensor);
    call.sendbuff = call.recvbuff;
  }
  return start(job, *collectives_, tensors, tensors);
}

Backend::Works Backend::reduce(Tensors& tensors, const c10d::ReduceOptions& opts) {
  Job job = this->job("anyccl:reduce", OpType::REDUCE, opts);
  const at::Tensor& tensor = check_single(job.name(), tensors);
  check_root(job, opts.rootRank);
  if (opts.rootTensor != 0)
    refuse(job.name(), "invalid root tensor: " + std::to_string(opts.rootTensor));
  anycclCall_t& call = job.call(anycclCollReduce, tensor.scalar_type());
  reduce_by(job, opts.reduceOp, tensor.scalar_type());
  call.root = static_cast<int>(opts.rootRank);
  call.count = units(tensor);
  if (call.root == rank_) {
    call.recvbuff = job.memory.both(tensor);
    call.sendbuff = call.recvbuff;
  } else {
    call.sendbuff = job.memory.input(tensor);  // and stays as it is
  }
  return start(job, *collectives_, tensors, tensors);
}

Backend::Works Backend::allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                                  const c10d::AllgatherOptions& opts) {
  Job job = this->job("anyccl:all_gather", OpType::ALLGATHER, opts);
  if (inputs.empty()) refuse(job.name(), "requires non-empty input tensor list");
  if (inputs.size() != outputs.size())
    refuse(job.name(), "requires input/output tensor lists to have the same length");
  const at::Tensor& input = single_input(job, inputs);
  const Tensors& pieces_of = outputs[0];
  if (pieces_of.size() != ranks())
    refuse(job.name(), "invalid output tensor list at index 0 (expected length " +
                           std::to_string(size_) + ", got " + std::to_string(pieces_of.size()) +
                           ")");
  check_tensors(job.name(), pieces_of, input.options());
  check_size(job, pieces_of, input, rank_);
  const Memory::Pieces pieces = job.memory.outputs(pieces_of);
  anycclCall_t& call = job.call(anycclCollAllGatherv, input.scalar_type());
  call.count = units(input);
  call.recvbuff = pieces.base;
  call.recvcounts = pieces.counts.data();
  call.rdispls = pieces.displs.data();
  call.sendbuff = apart(job.memory, input, pieces, element_of(input.scalar_type()).bytes,
                        static_cast<std::size_t>(rank_));
  return start(job, *collectives_, inputs, pieces_of);
}

void Backend::add_all_gather(Job& job, const at::Tensor& output, const at::Tensor& input) {
  check_pair(job, output, input);
  if (output.numel() != input.numel() * size_)
    C10_THROW_ERROR(ValueError, std::string("anyccl: ") + job.name() +
                                    ": output tensor size must be equal to world_size times input "
                                    "tensor size");
  anycclCall_t& call = job.call(anycclCollAllGather, input.scalar_type());
  call.count = units(input);
  call.recvbuff = job.memory.output(output);
  call.sendbuff = apart(job.memory, input, call.recvbuff, output.nbytes(),
                        static_cast<std::byte*>(call.recvbuff) +
                            static_cast<std::size_t>(rank_) * input.nbytes());
}

Backend::Works Backend::_allgather_base(at::Tensor& output, at::Tensor& input,
                                        const c10d::AllgatherOptions& opts) {
  Job job = this->job("anyccl:all_gather", OpType::_ALLGATHER_BASE, opts);
  add_all_gather(job, output, input);
  return start(job, *collectives_, input, output);
}

Backend::Works Backend::allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                        const c10d::AllgatherOptions& opts) {
  Job job = this->job("anyccl:all_gather", OpType::COALESCED, opts);
  if (outputs.size() != inputs.size())
    refuse(job.name(), "requires input/output tensor lists to have the same length");
  for (std::size_t i = 0; i < inputs.size(); ++i) add_all_gather(job, outputs[i], inputs[i]);
  return start(job, *collectives_, inputs, outputs);
}

Backend::Works Backend::allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                                            const c10d::AllgatherOptions& opts) {
  Job job = this->job("anyccl:all_gather", OpType::ALLGATHER_COALESCED, opts);
  if (inputs.empty()) refuse(job.name(), "requires non-empty input tensor list");
  if (outputs.size() != ranks())
    refuse(job.name(), "output lists should be equal to world size");
  for (const Tensors& of_rank : outputs)
    if (of_rank.size() != inputs.size())
      refuse(job.name(), "invalid output size: (expected length " +
                             std::to_string(inputs.size()) + ", got " +
                             std::to_string(of_rank.size()) + ")");
  std::vector<Memory::Pieces> all;
  all.reserve(inputs.size());  // calls point into them
  Tensors flat;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const at::Tensor& input = inputs[i];
    check_tensor(job.name(), input);
    Tensors pieces_of;
    for (const Tensors& of_rank : outputs) pieces_of.push_back(of_rank[i]);
    check_tensors(job.name(), pieces_of, input.options());
    for (std::size_t r = 0; r < pieces_of.size(); ++r)
      c10d::assertSizesMatch([&](const std::string& text) { refuse(job.name(), text); },
                             input.sizes(), pieces_of, r);
    const Memory::Pieces& pieces = all.emplace_back(job.memory.outputs(pieces_of));
    anycclCall_t& call = job.call(anycclCollAllGatherv, input.scalar_type());
    call.count = units(input);
    call.recvbuff = pieces.base;
    call.recvcounts = pieces.counts.data();
    call.rdispls = pieces.displs.data();
    call.sendbuff = apart(job.memory, input, pieces, element_of(input.scalar_type()).bytes,
                          static_cast<std::size_t>(rank_));
    flat.insert(flat.end(), pieces_of.begin(), pieces_of.end());
  }
  return start(job, *collectives_, inputs, flat);
}

Backend::Works Backend::gather(std::vector<Tensors>& outputs, Tensors& inputs,
                               const c10d::GatherOptions& opts) {
  Job job = this->job("anyccl:gather", OpType::GATHER, opts);
  check_root(job, opts.rootRank);
  const at::Tensor& input = single_input(job, inputs);
  anycclCall_t& call = job.call(anycclCollGatherv, input.scalar_type());
  call.root = static_cast<int>(opts.rootRank);
  call.count = units(input);
  if (call.root != rank_) {
    if (!outputs.empty()) refuse(job.name(), "requires empty output on non-root");
    call.sendbuff = job.memory.input(input);
    return start(job, *collectives_, inputs, {});
  }
  if (outputs.size() != 1)
    refuse(job.name(), "requires a single-element output list containing a list with " +
                           std::to_string(size_) + " tensors.");
  const Tensors& pieces_of = outputs[0];
  if (pieces_of.size() != ranks())
    refuse(job.name(), "Incorrect output list size " + std::to_string(pieces_of.size()) +
                           ". Output list size should be " + std::to_string(size_) +
                           ", same as size of the process group.");
  check_tensors(job.name(), pieces_of, input.options());
  check_size(job, pieces_of, input, rank_);
  const Memory::Pieces pieces = job.memory.outputs(pieces_of);
  call.recvbuff = pieces.base;
  call.recvcounts = pieces.counts.data();
  call.rdispls = pieces.displs.data();
  call.sendbuff = apart(job.memory, input, pieces, element_of(input.scalar_type()).bytes,
                        static_cast<std::size_t>(rank_));
  return start(job, *collectives_, inputs, pieces_of);
}

Backend::Works Backend::scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                const c10d::ScatterOptions& opts) {
  Job job = this->job("anyccl:scatter", OpType::SCATTER, opts);
  check_root(job, opts.rootRank);
  const at::Tensor& output = single_output(job, outputs);
  anycclCall_t& call = job.call(anycclCollScatterv, output.scalar_type());
  call.root = static_cast<int>(opts.rootRank);
  call.count = units(output);
  call.recvbuff = job.memory.output(output);
  if (call.root != rank_) {
    if (!inputs.empty()) refuse(job.name(), "requires empty input on non-root");
    return start(job, *collectives_, {}, outputs);
  }
  if (inputs.size() != 1)
    refuse(job.name(), "requires a single-element input list containing a list with " +
                           std::to_string(size_) + " tensors");
  const Tensors& pieces_of = inputs[0];
  if (pieces_of.size() != ranks())
    refuse(job.name(), "Incorrect input list size " + std::to_string(pieces_of.size()) +
                           ". Input list size should be " + std::to_string(size_) +
                           ", same as size of the process group.");
  check_tensors(job.name(), pieces_of, output.options());
  check_size(job, pieces_of, output, rank_);
  Memory::Pieces pieces = job.memory.inputs(pieces_of);
  separate(job, output, call, pieces);
  call.sendbuff = pieces.base;
  call.sendcounts = pieces.counts.data();
  call.sdispls = pieces.displs.data();
  return start(job, *collectives_, pieces_of, outputs);
}

Backend::Works Backend::reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                       const c10d::ReduceScatterOptions& opts) {
  Job job = this->job("anyccl:reduce_scatter", OpType::REDUCE_SCATTER, opts);
  const at::Tensor& output = single_output(job, outputs);
  if (inputs.size() != 1 || inputs[0].size() != ranks())
    refuse(job.name(), "invalid input tensor list at index 0 (expected length " +
                           std::to_string(size_) + ", got " +
                           std::to_string(inputs.empty() ? 0 : inputs[0].size()) + ")");
  const Tensors& pieces_of = inputs[0];
  check_tensors(job.name(), pieces_of, output.options());
  check_size(job, pieces_of, output, rank_);
  anycclCall_t& call = job.call(anycclCollReduceScatterv, output.scalar_type());
  reduce_by(job, opts.reduceOp, output.scalar_type());
  Memory::Pieces pieces = job.memory.inputs(pieces_of);
  call.recvbuff = job.memory.output(output);
  separate(job, output, call, pieces);
  call.count = units(output);
  call.sendbuff = pieces.base;
  call.sendcounts = pieces.counts.data();
  call.sdispls = pieces.displs.data();
  return start(job, *collectives_, pieces_of, outputs);
}

/// Where `output` overlaps a piece that others read, but is not the own one: it is written by way of
/// a temporary.
void Backend::separate(Job& job, const at::Tensor& output, anycclCall_t& call,
                       const Memory::Pieces& pieces) {
  const std::size_t unit = element_of(output.scalar_type()).bytes;
  for (std::size_t r = 0; r < ranks(); ++r) {
    const void* const piece = pieces.base + pieces.displs[r] * unit;
    if (static_cast<int>(r) == rank_ && piece == call.recvbuff) continue;
    if (!overlap(call.recvbuff, output.nbytes(), piece, pieces.counts[r] * unit)) continue;
    call.recvbuff = job.memory.copied_output(output);
    return;
  }
}

void Backend::add_reduce_scatter(Job& job, const at::Tensor& output, const at::Tensor& input,
                                 const c10d::ReduceOp& op) {
  check_pair(job, output, input);
  if (input.numel() != output.numel() * size_)
    C10_THROW_ERROR(ValueError, std::string("anyccl: ") + job.name() +
                                    ": input tensor must be the same size as output size times "
                                    "world size");
  anycclCall_t& call = job.call(anycclCollReduceScatter, output.scalar_type());
  reduce_by(job, op, output.scalar_type());
  call.count = units(output);
  call.recvbuff = job.memory.output(output);
  const auto* const direct = static_cast<const std::byte*>(job.memory.input(input));
  call.sendbuff = direct;
  if (call.recvbuff != direct + static_cast<std::size_t>(rank_) * output.nbytes() &&
      overlap(direct, input.nbytes(), call.recvbuff, output.nbytes()))
    call.sendbuff = job.memory.copied_input(input);
}

Backend::Works Backend::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                             const c10d::ReduceScatterOptions& opts) {
  Job job = this->job("anyccl:reduce_scatter", OpType::_REDUCE_SCATTER_BASE, opts);
  add_reduce_scatter(job, output, input, opts.reduceOp);
  return start(job, *collectives_, input, output);
}

Backend::Works Backend::reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                        const c10d::ReduceScatterOptions& opts) {
  Job job =
      this->job("anyccl:reduce_scatter", OpType::REDUCE_SCATTER_TENSOR_COALESCED, opts);
  if (outputs.size() != inputs.size())
    refuse(job.name(), "requires input/output tensor lists to have the same length");
  for (std::size_t i = 0; i < inputs.size(); ++i)
    add_reduce_scatter(job, outputs[i], inputs[i], opts.reduceOp);
  return start(job, *collectives_, inputs, outputs);
}

Backend::Works Backend::alltoall_base(at::Tensor& output, at::Tensor& input,
                                      std::vector<std::int64_t>& output_split,
                                      std::vector<std::int64_t>& input_split,
                                      const c10d::AllToAllOptions& opts) {
  Job job = this->job("anyccl:all_to_all", OpType::ALLTOALL_BASE, opts);
  check_pair(job, output, input);
  c10d::checkSplitSizes(input_split, input, size_);
  c10d::checkSplitSizes(output_split, output, size_);
  if (output_split.empty() && input_split.empty()) {
    if (output.numel() != input.numel())
      refuse(job.name(), "output and input tensors differ in size");
    anycclCall_t& call = job.call(anycclCollAllToAll, input.scalar_type());
    call.count = units(input) / ranks();
    call.recvbuff = job.memory.output(output);
    call.sendbuff = apart(job.memory, input, call.recvbuff, output.nbytes(), call.recvbuff);
    return start(job, *collectives_, input, output);
  }
  const auto divide = [&](const at::Tensor& tensor, const std::vector<std::int64_t>& split) {
    Memory::Pieces pieces;
    const std::int64_t rows = tensor.dim() == 0 ? 1 : tensor.size(0);
    const std::size_t row = rows == 0 ? 0 : units(tensor) / static_cast<std::size_t>(rows);
    std::size_t displ = 0;
    for (std::size_t r = 0; r < ranks(); ++r) {
      const std::int64_t length = split.empty() ? rows / size_ : split[r];
      pieces.counts.push_back(row * static_cast<std::size_t>(length));
      pieces.displs.push_back(displ);
      displ += pieces.counts.back();
    }
    return pieces;
  };
  const Memory::Pieces from = divide(input, input_split), to = divide(output, output_split);
  anycclCall_t& call = job.call(anycclCollAllToAllv, input.scalar_type());
  call.recvbuff = job.memory.output(output);
  call.sendbuff = apart(job.memory, input, call.recvbuff, output.nbytes(), nullptr);
  call.sendcounts = from.counts.data();
  call.sdispls = from.displs.data();
  call.recvcounts = to.counts.data();
  call.rdispls = to.displs.data();
  return start(job, *collectives_, input, output);
}

Backend::Works Backend::alltoall(Tensors& outputs, Tensors& inputs,
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
  const Memory::Pieces to = job.memory.outputs(outputs);
  Tensors apart_inputs;
  for (const at::Tensor& input : inputs) {
    bool overlaps = false;
    if (is_plain(input))
      for (std::size_t r = 0; r < ranks(); ++r)
        overlaps |= overlap(input.const_data_ptr(), input.nbytes(), to.base + to.displs[r] * unit,
                            to.counts[r] * unit);
    apart_inputs.push_back(overlaps ? input.clone() : input);
    if (overlaps) job.memory.temporaries().push_back(apart_inputs.back());
  }
  const Memory::Pieces from = job.memory.inputs(apart_inputs);
  anycclCall_t& call = job.call(anycclCollAllToAllv, inputs[0].scalar_type());
  call.sendbuff = from.base;
  call.sendcounts = from.counts.data();
  call.sdispls = from.displs.data();
  call.recvbuff = to.base;
  call.recvcounts = to.counts.data();
  call.rdispls = to.displs.data();
  return start(job, *collectives_, inputs, outputs);
}

Backend::Works Backend::barrier(const c10d::BarrierOptions& opts) {
  Job job = this->job("anyccl:barrier", OpType::BARRIER, opts);
  job.call(anycclCollBarrier, c10::ScalarType::Byte);
  return start(job, *collectives_, {}, {});
}

}  // namespace anyccl::torch
