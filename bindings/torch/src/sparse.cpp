// all_reduce of sparse COO tensors: every rank gets every rank's elements and adds them up in the
// order of ranks, so that all have the same bits. By messages, as ranks have different numbers of
// elements; in a thread of its own, as the second message depends on the first.

#include "arguments.hpp"
#include "backend.hpp"
#include "errors.hpp"

namespace anyccl::torch {
namespace {

constexpr const char* kTitle = "anyccl:sparse_all_reduce";
constexpr const char* kName = "sparse_all_reduce";
constexpr int kFirstTag = 0xf00000, kTags = 0x100000;  // above those of programs

/// Completes when its thread calls complete().
class SparseWork final : public c10d::Work {
 public:
  SparseWork(int rank, const char* title, const std::optional<std::vector<at::Tensor>>& inputs,
             std::uint64_t sequence, std::vector<at::Tensor> outputs)
      : Work(rank, c10d::OpType::_ALLREDUCE_SPARSE, title, inputs),
        sequence_(sequence),
        outputs_(std::move(outputs)) {}

  void complete(std::exception_ptr error) {
    finish(error);
    if (error != nullptr)
      future_->setError(error);
    else
      future_->markCompleted(c10::IValue(outputs_));
  }
  std::vector<at::Tensor> result() override { return outputs_; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }
  std::uint64_t getSequencenumber() const override { return sequence_; }

 private:
  const std::uint64_t sequence_;
  const std::vector<at::Tensor> outputs_;
  const c10::intrusive_ptr<c10::ivalue::Future> future_ = future_of_tensors();
};

/// Exchanges messages of one tag with all other ranks.
class Exchange {
 public:
  Exchange(std::shared_ptr<SharedComm> shared_comm, int rank, int size, int tag,
           unsigned int timeout_ms)
      : shared_comm_(std::move(shared_comm)),
        rank_(rank),
        size_(size),
        tag_(tag),
        timeout_ms_(timeout_ms) {}

  /// theirs[r] gets the message of rank r, mine goes to all. All are contiguous.
  void run(const at::Tensor& mine, const std::vector<at::Tensor>& theirs) const {
    std::vector<std::unique_ptr<anycclWork, void (*)(anycclWork_t)>> works;
    shared_comm_->with(kName, [&](anycclComm_t comm) {
      for (const bool sends : {false, true}) {
        for (int peer = 0; peer < size_; ++peer) {
          if (peer == rank_) continue;
          const at::Tensor& tensor = sends ? mine : theirs[static_cast<std::size_t>(peer)];
          anycclCall_t call = {};
          call.size = sizeof call;
          call.collective = sends ? anycclCollSend : anycclCollRecv;
          call.datatype = element_of(tensor.scalar_type()).type;
          call.count = units(tensor);
          call.root = peer;
          call.tag = tag_;
          call.timeout_ms = timeout_ms_;
          if (sends)
            call.sendbuff = tensor.const_data_ptr();
          else
            call.recvbuff = tensor.mutable_data_ptr();
          anycclWork_t issued = nullptr;
          check(anycclIssue(&call, comm, &issued), kName);
          works.emplace_back(issued, [](anycclWork_t work) { anycclWorkFree(work); });
        }
      }
    });
    // All, also after an error: they use the tensors.
    std::exception_ptr trouble;
    for (const auto& work : works) {
      const anycclResult_t code = anycclWorkWait(work.get());
      if (code != anycclSuccess && trouble == nullptr) trouble = failure(code, kName);
    }
    if (trouble != nullptr) std::rethrow_exception(trouble);
  }

 private:
  const std::shared_ptr<SharedComm> shared_comm_;
  const int rank_, size_, tag_;
  const unsigned int timeout_ms_;
};

at::Tensor sum_over_ranks(const Exchange& exchange, const at::Tensor& input, int rank, int size) {
  const at::Tensor mine = input.coalesce();
  const at::Tensor indices = mine._indices().contiguous(), values = mine._values().contiguous();
  // The values that all must agree on, then the number of elements.
  std::vector<std::int64_t> shape{mine.sparse_dim(), mine.dense_dim()};
  shape.insert(shape.end(), mine.sizes().begin(), mine.sizes().end());
  shape.resize(2 + 16);
  shape.push_back(mine._nnz());
  const at::Tensor header = at::tensor(shape, at::kLong);
  const auto ranks = static_cast<std::size_t>(size);
  std::vector<at::Tensor> headers(ranks), all_indices(ranks), all_values(ranks);
  for (at::Tensor& one : headers) one = at::empty_like(header);
  exchange.run(header, headers);
  headers[static_cast<std::size_t>(rank)] = header;
  for (std::size_t r = 0; r < ranks; ++r) {
    const auto last = header.numel() - 1;
    if (!headers[r].narrow(0, 0, last).equal(header.narrow(0, 0, last)))
      refuse(kName, "Sparse dimensions or sizes do not match those of rank " + std::to_string(r));
    const std::int64_t elements = headers[r][last].item<std::int64_t>();
    all_indices[r] = at::empty({mine.sparse_dim(), elements}, indices.options());
    std::vector<std::int64_t> sizes = values.sizes().vec();
    sizes[0] = elements;
    all_values[r] = at::empty(sizes, values.options());
  }
  exchange.run(indices, all_indices);
  exchange.run(values, all_values);
  all_indices[static_cast<std::size_t>(rank)] = indices;
  all_values[static_cast<std::size_t>(rank)] = values;
  at::Tensor sum;
  for (std::size_t r = 0; r < ranks; ++r) {
    const at::Tensor one =
        at::_sparse_coo_tensor_unsafe(all_indices[r], all_values[r], mine.sizes(), mine.options());
    sum = sum.defined() ? sum + one : one.clone();
  }
  return sum.coalesce();
}

}  // namespace

Backend::WorkPtr Backend::allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& opts) {
  if (tensors.size() != 1) refuse(kName, "requires a single-element tensor list");
  at::Tensor tensor = tensors[0];
  if (!tensor.device().is_cpu() || tensor.layout() != c10::kSparse)
    refuse(kName, "requires a sparse COO tensor on the CPU");
  if (opts.reduceOp.op_ != c10d::ReduceOp::SUM)
    refuse(kName, "sparse tensors support only ReduceOp.SUM");
  if (tensor.dim() > 16) refuse(kName, "the tensor has more than 16 dimensions");
  operator_of(kName, opts.reduceOp, tensor.scalar_type());
  const int tag = kFirstTag + static_cast<int>(sparse_sequence_++ % kTags);
  const Exchange exchange(core_->group.comm, rank_, size_, tag, limit_of(timeout_of(opts.timeout)));
  const std::uint64_t sequence = sequence_.fetch_add(1, std::memory_order_relaxed) + 1;
  const char* const title = profiled(kTitle);
  auto work = c10::make_intrusive<SparseWork>(
      rank_, title, title != nullptr ? std::make_optional(tensors) : std::nullopt, sequence,
      tensors);
  const auto body = [work, exchange, tensor, rank = rank_, size = size_] {
    std::exception_ptr error;
    try {
      const at::AutoDispatchBelowADInplaceOrView below_autograd;
      tensor.copy_(sum_over_ranks(exchange, tensor, rank, size));
    } catch (...) {
      error = std::current_exception();
    }
    work->complete(error);
  };
  if (opts.asyncOp) {
    core_->executor->submit(body);
  } else {
    body();
    work->wait();
  }
  return work;
}

}  // namespace anyccl::torch
