// Operations on single tensors, and the barrier.

#include "arguments.hpp"
#include "backend.hpp"

namespace anyccl::torch {
using c10d::OpType;

void Backend::check_root(const Job& job, std::int64_t root) const {
  if (root < 0 || root >= size_) refuse(job.name(), "invalid root rank: " + std::to_string(root));
}

void Backend::set_operator(Job& job, const c10d::ReduceOp& op, c10::ScalarType type) {
  if (op.op_ == c10d::ReduceOp::PREMUL_SUM)
    job.factor = factor_of(job.name(), op, type);
  else
    job.calls.back().op = operator_of(job.name(), op, type);
  const int accumulate = options_->numbers.accumulate;
  if (accumulate == ANYCCL_CONFIG_UNDEF_INT) return;
  anycclCall_t& call = job.calls.back();
  const bool adds = op.op_ == c10d::ReduceOp::SUM || op.op_ == c10d::ReduceOp::AVG;
  const bool is_small = type == at::kBFloat16 || type == at::kHalf;
  if (adds && is_small && call.collective != anycclCollReduceScatterv)
    job.config_of(call).accumulateType = accumulate;
}

Backend::WorkPtr Backend::broadcast(Tensors& tensors, const c10d::BroadcastOptions& opts) {
  Job job = this->job("anyccl:broadcast", OpType::BROADCAST, opts);
  const at::Tensor& tensor = check_single(job.name(), tensors);
  check_root(job, opts.rootRank);
  if (opts.rootTensor != 0)
    refuse(job.name(), "invalid root tensor: " + std::to_string(opts.rootTensor));
  anycclCall_t& call = job.add_call(anycclCollBroadcast, tensor.scalar_type());
  call.root = static_cast<int>(opts.rootRank);
  call.count = units(tensor);
  if (call.root == rank_) {
    call.sendbuff = job.memory.input(tensor);
    call.recvbuff = const_cast<void*>(call.sendbuff);  // in place: it is only read
  } else {
    call.recvbuff = job.memory.output(tensor);
    call.sendbuff = call.recvbuff;
  }
  return start(job, tensors, tensors);
}

Backend::WorkPtr Backend::allreduce(Tensors& tensors, const c10d::AllreduceOptions& opts) {
  if (tensors.size() == 1 && tensors[0].defined() && tensors[0].layout() == c10::kSparse)
    return allreduce_sparse(tensors, opts);
  Job job = this->job("anyccl:all_reduce", OpType::ALLREDUCE, opts);
  const at::Tensor& tensor = check_single(job.name(), tensors);
  anycclCall_t& call = job.add_call(anycclCollAllReduce, tensor.scalar_type());
  set_operator(job, opts.reduceOp, tensor.scalar_type());
  call.count = units(tensor);
  call.recvbuff = job.memory.input_and_output(tensor);
  call.sendbuff = call.recvbuff;
  return start(job, tensors, tensors);
}

Backend::WorkPtr Backend::all_reduce_leaves(at::Tensor& output, at::Tensor& input, int leaves,
                                            const c10d::AllreduceOptions& opts) {
  Job job = this->job("anyccl:all_reduce", OpType::ALLREDUCE, opts);
  check_tensor(job.name(), output);
  check_tensor(job.name(), input);
  const int parts = std::max(1, leaves / size_);
  if (input.numel() != output.numel() * parts)
    C10_THROW_ERROR(ValueError, std::string("anyccl: ") + job.name() + ": the input has " +
                                    std::to_string(input.numel()) + " elements instead of " +
                                    std::to_string(parts) + " leaves of " +
                                    std::to_string(output.numel()));
  anycclCall_t& call = job.add_call(anycclCollAllReduce, input.scalar_type());
  job.config_of(call).leaves = leaves;
  if (output.scalar_type() != input.scalar_type()) job.set_result_type(call, output.scalar_type());
  set_operator(job, opts.reduceOp, input.scalar_type());
  call.count = units(output);
  call.recvbuff = job.memory.output(output);
  call.sendbuff = job.memory.input(input);
  if (overlap(call.sendbuff, input.nbytes(), call.recvbuff, output.nbytes()))
    call.sendbuff = job.memory.copied_input(input);
  return start(job, input, output);
}

Backend::WorkPtr Backend::allreduce_coalesced(Tensors& tensors,
                                              const c10d::AllreduceCoalescedOptions& opts) {
  Job job = this->job("anyccl:all_reduce", OpType::ALLREDUCE_COALESCED, opts);
  if (tensors.empty()) refuse(job.name(), "requires non-empty tensor list");
  for (const at::Tensor& tensor : tensors) check_tensor(job.name(), tensor);
  check_tensors(job.name(), tensors, tensors[0].options());
  for (const at::Tensor& tensor : tensors) {
    anycclCall_t& call = job.add_call(anycclCollAllReduce, tensor.scalar_type());
    set_operator(job, opts.reduceOp, tensor.scalar_type());
    call.count = units(tensor);
    call.recvbuff = job.memory.input_and_output(tensor);
    call.sendbuff = call.recvbuff;
  }
  return start(job, tensors, tensors);
}

Backend::WorkPtr Backend::reduce(Tensors& tensors, const c10d::ReduceOptions& opts) {
  Job job = this->job("anyccl:reduce", OpType::REDUCE, opts);
  const at::Tensor& tensor = check_single(job.name(), tensors);
  check_root(job, opts.rootRank);
  if (opts.rootTensor != 0)
    refuse(job.name(), "invalid root tensor: " + std::to_string(opts.rootTensor));
  anycclCall_t& call = job.add_call(anycclCollReduce, tensor.scalar_type());
  set_operator(job, opts.reduceOp, tensor.scalar_type());
  call.root = static_cast<int>(opts.rootRank);
  call.count = units(tensor);
  if (call.root == rank_) {
    call.recvbuff = job.memory.input_and_output(tensor);
    call.sendbuff = call.recvbuff;
  } else {
    call.sendbuff = job.memory.input(tensor);  // and stays as it is
  }
  return start(job, tensors, tensors);
}

void Backend::add_all_gather(Job& job, const at::Tensor& output, const at::Tensor& input) {
  check_pair(job, output, input);
  if (output.numel() != input.numel() * size_)
    C10_THROW_ERROR(ValueError, std::string("anyccl: ") + job.name() +
                                    ": output tensor size must be equal to world_size times input "
                                    "tensor size");
  anycclCall_t& call = job.add_call(anycclCollAllGather, input.scalar_type());
  call.count = units(input);
  call.recvbuff = job.memory.output(output);
  call.sendbuff = input_apart_from(
      job.memory, input, call.recvbuff, output.nbytes(),
      static_cast<std::byte*>(call.recvbuff) + static_cast<std::size_t>(rank_) * input.nbytes());
}

Backend::WorkPtr Backend::_allgather_base(at::Tensor& output, at::Tensor& input,
                                          const c10d::AllgatherOptions& opts) {
  Job job = this->job("anyccl:all_gather", OpType::_ALLGATHER_BASE, opts);
  add_all_gather(job, output, input);
  return start(job, input, output);
}

Backend::WorkPtr Backend::allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                          const c10d::AllgatherOptions& opts) {
  Job job = this->job("anyccl:all_gather", OpType::COALESCED, opts);
  if (outputs.size() != inputs.size())
    refuse(job.name(), "requires input/output tensor lists to have the same length");
  for (std::size_t i = 0; i < inputs.size(); ++i) add_all_gather(job, outputs[i], inputs[i]);
  return start(job, inputs, outputs);
}

void Backend::add_reduce_scatter(Job& job, const at::Tensor& output, const at::Tensor& input,
                                 const c10d::ReduceOp& op) {
  check_tensor(job.name(), output);
  check_tensor(job.name(), input);
  if (input.numel() != output.numel() * size_)
    C10_THROW_ERROR(ValueError, std::string("anyccl: ") + job.name() +
                                    ": input tensor must be the same size as output size times "
                                    "world size");
  anycclCall_t& call = job.add_call(anycclCollReduceScatter, input.scalar_type());
  const bool has_one_type = output.scalar_type() == input.scalar_type();
  if (!has_one_type) job.set_result_type(call, output.scalar_type());
  set_operator(job, op, input.scalar_type());
  call.count = units(output);
  call.recvbuff = job.memory.output(output);
  const auto* const direct = static_cast<const std::byte*>(job.memory.input(input));
  call.sendbuff = direct;
  const bool in_place =
      has_one_type && call.recvbuff == direct + static_cast<std::size_t>(rank_) * output.nbytes();
  if (!in_place && overlap(direct, input.nbytes(), call.recvbuff, output.nbytes()))
    call.sendbuff = job.memory.copied_input(input);
}

Backend::WorkPtr Backend::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                               const c10d::ReduceScatterOptions& opts) {
  Job job = this->job("anyccl:reduce_scatter", OpType::_REDUCE_SCATTER_BASE, opts);
  add_reduce_scatter(job, output, input, opts.reduceOp);
  return start(job, input, output);
}

Backend::WorkPtr Backend::reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                          const c10d::ReduceScatterOptions& opts) {
  Job job = this->job("anyccl:reduce_scatter", kCoalescedReduceScatter, opts);
  if (outputs.size() != inputs.size())
    refuse(job.name(), "requires input/output tensor lists to have the same length");
  for (std::size_t i = 0; i < inputs.size(); ++i)
    add_reduce_scatter(job, outputs[i], inputs[i], opts.reduceOp);
  return start(job, inputs, outputs);
}

Backend::WorkPtr Backend::alltoall_base(at::Tensor& output, at::Tensor& input,
                                        std::vector<std::int64_t>& output_split,
                                        std::vector<std::int64_t>& input_split,
                                        const c10d::AllToAllOptions& opts) {
  Job job = this->job("anyccl:all_to_all", OpType::ALLTOALL_BASE, opts);
  check_pair(job, output, input);
  if (output_split.empty() && input_split.empty()) {  // equal parts of all elements, as with Gloo
    for (const at::Tensor* const tensor : {&input, &output})
      if (tensor->numel() % size_ != 0)
        refuse(job.name(), "a size of " + std::to_string(tensor->numel()) +
                               " elements does not divide equally across " + std::to_string(size_) +
                               " ranks");
    if (output.numel() != input.numel())
      refuse(job.name(), "output and input tensors differ in size");
    anycclCall_t& call = job.add_call(anycclCollAllToAll, input.scalar_type());
    call.count = units(input) / ranks();
    call.recvbuff = job.memory.output(output);
    call.sendbuff =
        input_apart_from(job.memory, input, call.recvbuff, output.nbytes(), call.recvbuff);
    return start(job, input, output);
  }
  c10d::checkSplitSizes(input_split, input, size_);
  c10d::checkSplitSizes(output_split, output, size_);
  const auto divide = [&](const at::Tensor& tensor, const std::vector<std::int64_t>& split) {
    Memory::Blocks blocks;
    const std::int64_t rows = tensor.dim() == 0 ? 1 : tensor.size(0);
    const std::size_t row = rows == 0 ? 0 : units(tensor) / static_cast<std::size_t>(rows);
    std::size_t displ = 0;
    for (std::size_t r = 0; r < ranks(); ++r) {
      const std::int64_t length = split.empty() ? rows / size_ : split[r];
      blocks.counts.push_back(row * static_cast<std::size_t>(length));
      blocks.displs.push_back(displ);
      displ += blocks.counts.back();
    }
    return blocks;
  };
  const Memory::Blocks from = divide(input, input_split), to = divide(output, output_split);
  anycclCall_t& call = job.add_call(anycclCollAllToAllv, input.scalar_type());
  call.recvbuff = job.memory.output(output);
  call.sendbuff = input_apart_from(job.memory, input, call.recvbuff, output.nbytes(), nullptr);
  call.sendcounts = from.counts.data();
  call.sdispls = from.displs.data();
  call.recvcounts = to.counts.data();
  call.rdispls = to.displs.data();
  return start(job, input, output);
}

Backend::WorkPtr Backend::barrier(const c10d::BarrierOptions& opts) {
  Job job = this->job("anyccl:barrier", OpType::BARRIER, opts);
  job.add_call(anycclCollBarrier, c10::ScalarType::Byte);
  return start(job, {}, {});
}

}  // namespace anyccl::torch
