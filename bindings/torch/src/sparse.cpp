// all_reduce of sparse COO tensors: every rank gets every rank's elements and adds them up in the
// order of ranks, so that all have the same bits. Shapes go first, by a collective, so that a rank
// that calls something else is named; then elements by messages, as ranks have different numbers of
// them, in a thread of its own.

#include "arguments.hpp"
#include "backend.hpp"
#include "errors.hpp"
#include "waiting.hpp"

namespace anyccl::torch {
namespace {

constexpr const char* kTitle = "anyccl:sparse_all_reduce";
constexpr const char* kName = "sparse_all_reduce";
constexpr int kDimensions = 16;

/// The work that a sum waits for now. Any thread.
class Awaited {
 public:
  /// Returns the result of `work`, which it does not free. Called by the thread of the sum.
  anycclResult_t wait(anycclWork_t work) {
    set(work);
    const anycclResult_t result = anycclWorkWait(work);
    set(nullptr);
    return result;
  }
  /// For whom it waits, see awaited_text(); empty: for nobody.
  std::string ranks() {
    const std::lock_guard lock(mutex_);
    const bool waits = work_ != nullptr && anycclWorkWaitFor(work_, 1) == anycclInProgress;
    return waits ? awaited_text() : "";
  }

 private:
  void set(anycclWork_t work) {
    const std::lock_guard lock(mutex_);
    work_ = work;
  }
  std::mutex mutex_;
  anycclWork_t work_ = nullptr;
};

/// Completes when its thread calls complete().
class SparseWork final : public c10d::Work {
 public:
  SparseWork(int rank, const char* title, const std::optional<std::vector<at::Tensor>>& inputs,
             std::uint64_t sequence, std::vector<at::Tensor> outputs,
             std::shared_ptr<Awaited> awaited)
      : Work(rank, c10d::OpType::_ALLREDUCE_SPARSE, title, inputs),
        sequence_(sequence),
        outputs_(std::move(outputs)),
        awaited_(std::move(awaited)) {}

  void complete(std::exception_ptr error) {
    finish(error);
    if (error != nullptr)
      future_->setError(error);
    else
      future_->markCompleted(c10::IValue(outputs_));
  }
  bool wait(std::chrono::milliseconds timeout) override {
    const auto deadline =
        timeout == kNoTimeout ? Clock::time_point::max() : deadline_after(timeout);
    std::unique_lock lock(mutex_);
    while (!completed_) {
      cv_.wait_until(lock, std::min(deadline, Clock::now() + kSignalTime),
                     [this] { return completed_; });
      if (completed_) break;
      lock.unlock();
      check_signals();
      if (Clock::now() >= deadline) throw_timed_out(timeout, opType_, awaited_->ranks());
      lock.lock();
    }
    if (exception_ != nullptr) std::rethrow_exception(exception_);
    synchronize();  // torch forgets it
    return true;
  }
  std::vector<at::Tensor> result() override { return outputs_; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }
  std::uint64_t getSequencenumber() const override { return sequence_; }

 private:
  const std::uint64_t sequence_;
  const std::vector<at::Tensor> outputs_;
  const std::shared_ptr<Awaited> awaited_;
  const c10::intrusive_ptr<c10::ivalue::Future> future_ = future_of_tensors();
};

using OpenWork = std::unique_ptr<anycclWork, void (*)(anycclWork_t)>;

OpenWork issue(const anycclCall_t& call, anycclComm_t comm) {
  anycclWork_t issued = nullptr;
  check(anycclIssue(&call, comm, &issued), kName);
  return {issued, [](anycclWork_t work) { anycclWorkFree(work); }};
}

/// Exchanges the parts of one sum with all other ranks: messages have one tag.
class Exchange {
 public:
  Exchange(std::shared_ptr<SharedComm> shared_comm, int rank, int size, int tag,
           unsigned int timeout_ms)
      : shared_comm_(std::move(shared_comm)),
        rank_(rank),
        size_(size),
        tag_(tag),
        timeout_ms_(timeout_ms) {}

  /// Issues an all-gather: row r of `all` gets the header of rank r. It has its place among the
  /// group's collectives.
  OpenWork gather(const at::Tensor& header, const at::Tensor& all) const {
    anycclCall_t call = {};
    call.size = sizeof call;
    call.collective = anycclCollAllGather;
    call.datatype = anycclInt64;
    call.count = static_cast<std::size_t>(header.numel());
    call.sendbuff = header.const_data_ptr();
    call.recvbuff = all.mutable_data_ptr();
    call.timeout_ms = timeout_ms_;
    OpenWork issued(nullptr, nullptr);
    shared_comm_->with(kName, [&](anycclComm_t comm) { issued = issue(call, comm); });
    return issued;
  }

  /// theirs[r] gets the message of rank r, mine goes to all. All are contiguous.
  void run(const at::Tensor& mine, const std::vector<at::Tensor>& theirs, Awaited& awaited) const {
    std::vector<OpenWork> works;
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
          works.push_back(issue(call, comm));
        }
      }
    });
    // All, also after an error: they use the tensors.
    std::exception_ptr trouble;
    for (const auto& work : works) {
      const anycclResult_t code = awaited.wait(work.get());
      if (code != anycclSuccess && trouble == nullptr) trouble = failure(code, kName);
    }
    if (trouble != nullptr) std::rethrow_exception(trouble);
  }

 private:
  const std::shared_ptr<SharedComm> shared_comm_;
  const int rank_, size_, tag_;
  const unsigned int timeout_ms_;
};

/// One sum on its way, of a tensor as it was when this was made.
class SparseSum {
 public:
  /// Issues the all-gather of the headers. Does not copy an `input` that is coalesced.
  SparseSum(Exchange exchange, const at::Tensor& input, int rank, int size,
            std::shared_ptr<Awaited> awaited)
      : exchange_(std::move(exchange)),
        mine_(input.coalesce()),
        indices_(mine_._indices().contiguous()),
        values_(mine_._values().contiguous()),
        header_(header_of(mine_)),
        headers_(at::empty({size, header_.numel()}, header_.options())),
        rank_(rank),
        awaited_(std::move(awaited)),
        gathered_(exchange_.gather(header_, headers_)) {}

  /// Waits for all ranks.
  at::Tensor complete();

 private:
  /// The values that all must agree on, then the number of elements.
  static at::Tensor header_of(const at::Tensor& mine) {
    std::vector<std::int64_t> shape{mine.sparse_dim(), mine.dense_dim()};
    shape.insert(shape.end(), mine.sizes().begin(), mine.sizes().end());
    shape.resize(2 + kDimensions);
    shape.push_back(mine._nnz());
    return at::tensor(shape, at::kLong);
  }

  const Exchange exchange_;
  const at::Tensor mine_;              // the program's tensor, if that is coalesced:
  const at::Tensor indices_, values_;  // these stay as they were
  const at::Tensor header_, headers_;
  const int rank_;
  const std::shared_ptr<Awaited> awaited_;
  const OpenWork gathered_;
};

at::Tensor SparseSum::complete() {
  if (const anycclResult_t code = awaited_->wait(gathered_.get()); code != anycclSuccess)
    std::rethrow_exception(failure(code, kName));
  const auto ranks = static_cast<std::size_t>(headers_.size(0));
  std::vector<at::Tensor> all_indices(ranks), all_values(ranks);
  for (std::size_t r = 0; r < ranks; ++r) {
    const at::Tensor header = headers_[static_cast<std::int64_t>(r)];
    const auto last = header_.numel() - 1;
    if (!header.narrow(0, 0, last).equal(header_.narrow(0, 0, last)))
      refuse(kName, "Sparse dimensions or sizes do not match those of rank " + std::to_string(r));
    const std::int64_t elements = header[last].item<std::int64_t>();
    all_indices[r] = at::empty({mine_.sparse_dim(), elements}, indices_.options());
    std::vector<std::int64_t> sizes = values_.sizes().vec();
    sizes[0] = elements;
    all_values[r] = at::empty(sizes, values_.options());
  }
  exchange_.run(indices_, all_indices, *awaited_);
  exchange_.run(values_, all_values, *awaited_);
  all_indices[static_cast<std::size_t>(rank_)] = indices_;
  all_values[static_cast<std::size_t>(rank_)] = values_;
  at::Tensor sum;
  for (std::size_t r = 0; r < ranks; ++r) {
    const at::Tensor one = at::_sparse_coo_tensor_unsafe(all_indices[r], all_values[r],
                                                         mine_.sizes(), mine_.options());
    sum = sum.defined() ? sum + one : one.clone();
  }
  return sum.coalesce();
}

using OpenSums =
    std::vector<std::pair<const c10::TensorImpl*, c10::weak_intrusive_ptr<c10d::Work>>>;

/// Returns when earlier sums of the same tensor are over: they give it other elements. Drops those
/// that are over from `open`. Throws what signals raise.
void finish_before(const at::Tensor& tensor, OpenSums& open) {
  std::erase_if(open, [](const auto& one) { return one.second.expired(); });
  for (const auto& [impl, sum] : open) {
    const auto work = impl == tensor.unsafeGetTensorImpl() ? sum.lock() : nullptr;
    if (work == nullptr) continue;
    try {
      work->wait(kNoTimeout);
    } catch (...) {
      if (!work->isCompleted()) throw;  // its own failure is told by its own wait()
    }
  }
}

}  // namespace

Backend::WorkPtr Backend::allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& opts) {
  if (tensors.size() != 1) refuse(kName, "requires a single-element tensor list");
  at::Tensor tensor = tensors[0];
  if (!tensor.device().is_cpu() || tensor.layout() != c10::kSparse)
    refuse(kName, "requires a sparse COO tensor on the CPU");
  if (opts.reduceOp.op_ != c10d::ReduceOp::SUM)
    refuse(kName, "sparse tensors support only ReduceOp.SUM");
  if (tensor.dim() > kDimensions) refuse(kName, "the tensor has more than 16 dimensions");
  operator_of(kName, opts.reduceOp, tensor.scalar_type());
  finish_before(tensor, sparse_open_);
  const int tag = ANYCCL_LAYER_TAG(static_cast<int>(sparse_sequence_++ % (1U << 20)));
  const Exchange exchange(core_->group.comm, rank_, size_, tag, limit_of(timeout_of(opts.timeout)));
  const at::AutoDispatchBelowADInplaceOrView here_too;
  const auto awaited = std::make_shared<Awaited>();
  const auto sum = std::make_shared<SparseSum>(exchange, tensor, rank_, size_, awaited);
  const std::uint64_t sequence = sequence_.fetch_add(1, std::memory_order_relaxed) + 1;
  const char* const title = profiler_title(kTitle);
  auto work = c10::make_intrusive<SparseWork>(
      rank_, title, title != nullptr ? std::make_optional(tensors) : std::nullopt, sequence,
      tensors, awaited);
  const auto body = [work, sum, tensor] {
    std::exception_ptr error;
    try {
      const at::AutoDispatchBelowADInplaceOrView below_autograd;
      tensor.copy_(sum->complete());
    } catch (...) {
      error = std::current_exception();
    }
    work->complete(error);
  };
  sparse_open_.emplace_back(tensor.unsafeGetTensorImpl(), WorkPtr(work));
  core_->executor->submit(body);
  if (!opts.asyncOp) work->wait(kNoTimeout);
  return work;
}

}  // namespace anyccl::torch
