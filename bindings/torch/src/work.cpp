#include "work.hpp"

#include "devices.hpp"
#include "errors.hpp"

namespace anyccl::torch {

constexpr const char* kNotTimed = "anyccl: getDuration only works if timing was enabled";

c10::intrusive_ptr<c10::ivalue::Future> future_of_tensors(std::vector<c10::Device> devices) {
  return c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()),
                                                  std::move(devices));
}

void DoneWork::end() {
  if (timed_) ended_ = std::chrono::steady_clock::now();
  if (recordFunctionEndCallback_) {
    recordFunctionEndCallback_();
    recordFunctionEndCallback_ = nullptr;
  }
}

c10::intrusive_ptr<c10::ivalue::Future> DoneWork::getFuture() {
  auto future = future_of_tensors(devices_of(outputs_));
  future->markCompleted(c10::IValue(result()));
  return future;
}

float DoneWork::getDuration() const {
  TORCH_CHECK(timed_, kNotTimed);
  return std::chrono::duration<float, std::milli>(ended_ - begun_).count();
}

PendingWork::PendingWork(int rank, c10d::OpType type, const char* title,
                         const std::optional<std::vector<at::Tensor>>& inputs,
                         std::uint64_t sequence, bool timed, std::shared_ptr<Operation> operation,
                         bool owner, std::vector<at::Tensor> outputs)
    : Work(rank, type, title, inputs),
      sequence_(sequence),
      timed_(timed),
      operation_(std::move(operation)),
      owner_(owner),
      outputs_(std::move(outputs)) {
  if (!recordFunctionEndCallback_) return;
  profiled_ = true;
  operation_->at_end(std::move(recordFunctionEndCallback_));
  recordFunctionEndCallback_ = nullptr;
}

PendingWork::~PendingWork() {
  if (owner_) operation_->abandon();
}

bool PendingWork::isSuccess() const {
  return operation_->poll() && operation_->error() == nullptr;
}

std::vector<at::Tensor> PendingWork::result() {
  TORCH_CHECK(operation_->is_in_queues() || operation_->poll(),
              "anyccl: the result is available once the work has completed");
  return outputs_;
}

/// Without a time limit the current stream waits for calls in queues, and not the caller.
bool PendingWork::wait(std::chrono::milliseconds timeout) {
  if (timeout == kNoTimeout && operation_->is_in_queues() && !operation_->poll()) {
    synchronize();  // torch forgets it
    operation_->hold_current_stream();
    operation_->release_tensors();
    return true;
  }
  if (!operation_->wait(timeout)) throw_timed_out(timeout, opType_, awaited_text());
  synchronize();  // torch forgets it
  if (const std::exception_ptr error = operation_->error()) std::rethrow_exception(error);
  return true;
}

void PendingWork::abort() {
  throw_backend_error("anyccl: an operation cannot be aborted, only its process group");
}

c10::intrusive_ptr<c10::ivalue::Future> PendingWork::getFuture() {
  {
    const std::lock_guard lock(mutex_);
    if (future_) return future_;
    future_ = future_of_tensors(devices_of(outputs_));
  }
  synchronize();  // torch forgets the work, for whoever has the future waits for that
  if (!operation_->is_in_queues()) {
    operation_->watch({future_, outputs_});
    return future_;
  }
  const PoolStream stream(operation_->device());  // callbacks are put into streams now
  try {
    operation_->hold_current_stream();
    future_->markCompleted(c10::IValue(outputs_));
  } catch (...) {
    future_->setError(std::current_exception());
  }
  return future_;
}

float PendingWork::getDuration() const {
  TORCH_CHECK(timed_, kNotTimed);
  TORCH_CHECK(operation_->poll(), "anyccl: the duration is known once the work has completed");
  return operation_->seconds() * 1000;
}

void Coalescing::start() {
  if (const auto unfinished = take())
    for (const Part& part : *unfinished) part.operation->abandon();
  const std::lock_guard lock(mutex_);
  parts_[std::this_thread::get_id()];
  ++threads_;
}

bool Coalescing::add(const std::shared_ptr<Operation>& operation, at::TensorList outputs) {
  std::vector<Part>* const mine = parts_of_this_thread();
  if (mine == nullptr) return false;
  // There are kMany only if an exception kept the program from the end, of which torch tells us
  // nothing: complete operations must not be kept for ever.
  constexpr std::size_t kMany = 1024;
  if (mine->size() % kMany == 0)
    std::erase_if(*mine, [](const Part& part) {
      return part.operation->poll() && part.operation->error() == nullptr;
    });
  mine->push_back({operation, outputs.vec()});
  return true;
}

/// Returns null if this thread does not coalesce. Nobody else uses it.
std::vector<Coalescing::Part>* Coalescing::parts_of_this_thread() {
  if (threads_.load(std::memory_order_relaxed) == 0) return nullptr;  // it would know
  const std::lock_guard lock(mutex_);
  const auto mine = parts_.find(std::this_thread::get_id());
  return mine == parts_.end() ? nullptr : &mine->second;
}

std::optional<std::vector<Coalescing::Part>> Coalescing::take() {
  const std::lock_guard lock(mutex_);
  auto mine = parts_.extract(std::this_thread::get_id());
  if (mine.empty()) return std::nullopt;
  --threads_;
  return std::move(mine.mapped());
}

void Coalescing::clear() {
  parts_.clear();
  threads_ = 0;
}

}  // namespace anyccl::torch
