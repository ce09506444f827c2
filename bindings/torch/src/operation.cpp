#include "operation.hpp"

#include <ATen/core/grad_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <cstdlib>

#include "anyccl/device.h"
#include "devices.hpp"
#include "errors.hpp"
#include "waiting.hpp"

namespace anyccl::torch {

void copy_back(const std::vector<CopyBack>& copies) {
  if (copies.empty()) return;
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const PoolStream stream(copies[0].to.device());
  for (const CopyBack& copy : copies) copy.to.copy_(copy.from);
  stream.finish();
}

namespace {

std::uintptr_t begin_of(const at::Tensor& tensor) {
  return reinterpret_cast<std::uintptr_t>(tensor.const_data_ptr());
}

/// Behind its last element.
std::uintptr_t end_of(const at::Tensor& tensor) {
  if (tensor.numel() == 0) return begin_of(tensor);
  std::int64_t last = 0;
  for (std::int64_t d = 0; d < tensor.dim(); ++d) last += (tensor.size(d) - 1) * tensor.stride(d);
  return begin_of(tensor) + static_cast<std::uintptr_t>(last + 1) * tensor.element_size();
}

struct Steps {
  std::int64_t stride, most;  // of one dimension: how many times
};

/// Whether `distance` is a sum of strides, each at most so many times in either direction. Larger
/// strides come first. True after many tries, too.
bool can_reach(std::int64_t distance, c10::ArrayRef<Steps> steps, int& tries) {
  if (steps.empty() || ++tries > 1000) return distance == 0 || tries > 1000;
  std::int64_t rest = 0;
  for (const Steps& s : steps.slice(1)) rest += s.stride * s.most;
  const std::int64_t stride = steps[0].stride, most = steps[0].most;
  for (std::int64_t times = std::max(-most, (distance - rest) / stride - 1);
       times <= std::min(most, (distance + rest) / stride + 1); ++times)
    if (std::abs(distance - times * stride) <= rest &&
        can_reach(distance - times * stride, steps.slice(1), tries))
      return true;
  return false;
}

/// Whether they may have an element in common; exact for two of one shape, such as columns.
bool may_overlap(const at::Tensor& a, const at::Tensor& b) {
  if (begin_of(a) >= end_of(b) || begin_of(b) >= end_of(a)) return false;
  const auto distance = static_cast<std::int64_t>(begin_of(b) - begin_of(a)),
             element = static_cast<std::int64_t>(a.element_size());
  if (a.sizes() != b.sizes() || a.strides() != b.strides() || a.dtype() != b.dtype() ||
      distance % element != 0)
    return true;
  c10::SmallVector<Steps, 5> steps;
  for (std::int64_t d = 0; d < a.dim(); ++d)
    if (a.size(d) > 1 && a.stride(d) > 0) steps.push_back({a.stride(d), a.size(d) - 1});
  std::sort(steps.begin(), steps.end(),
            [](const Steps& x, const Steps& y) { return x.stride > y.stride; });
  int tries = 0;
  return can_reach(distance / element, steps, tries);
}

}  // namespace

void Operation::writes(const at::Tensor& tensor) {
  written_.emplace_back(begin_of(tensor), end_of(tensor));
}

bool Operation::may_write(const at::Tensor& tensor, bool by_copies) const {
  for (const CopyBack& copy : copies_)
    if (may_overlap(copy.to, tensor)) return true;
  if (by_copies) return false;
  const std::lock_guard lock(mutex_);
  for (const auto& [from, to] : written_)
    if (from < end_of(tensor) && begin_of(tensor) < to) return true;
  return false;
}

std::vector<std::shared_ptr<Operation>> OpenOperations::forget_finished() {
  std::vector<std::shared_ptr<Operation>> left;
  std::size_t copying = 0;
  std::erase_if(open_, [&](const std::weak_ptr<Operation>& one) {
    auto operation = one.lock();
    if (operation == nullptr) return true;
    const bool is_finished = operation->is_finished();
    copying += !is_finished && operation->has_copies() ? 1 : 0;
    left.push_back(std::move(operation));
    return is_finished;
  });
  copying_.store(copying);
  return left;
}

void OpenOperations::add(const std::shared_ptr<Operation>& operation) {
  // Freed behind the lock: the last to have an operation frees its tensors.
  std::vector<std::shared_ptr<Operation>> looked_at;
  const std::lock_guard lock(mutex_);
  open_.push_back(operation);
  if (operation->has_copies()) copying_.fetch_add(1);
  if (open_.size() < many_) return;
  looked_at = forget_finished();
  many_ = std::max<std::size_t>(16, 2 * open_.size());
}

void OpenOperations::finish_before(const at::Tensor& tensor, bool is_copied) {
  const bool by_any = is_copied || !tensor.is_cpu();
  if (!by_any && copying_.load() == 0) return;
  std::vector<std::shared_ptr<Operation>> earlier;
  {
    const std::lock_guard lock(mutex_);
    earlier = forget_finished();
  }
  for (const auto& operation : earlier)
    if (operation->may_write(tensor, !by_any)) operation->wait(std::chrono::milliseconds{0});
}

Operation::~Operation() {
  for (const anycclWork_t work : works_) anycclWorkFree(work);
}

Operation::Operation(std::shared_ptr<Executor> executor, const char* name, c10::Device device)
    : executor_(std::move(executor)), name_(name), stream_(current_stream(device)) {}

bool Operation::is_in_queues() const {
  const auto is_queued = [](anycclWork_t work) {
    int device = ANYCCL_NO_DEVICE;
    return anycclWorkGetDevice(work, &device) == anycclSuccess && device != ANYCCL_NO_DEVICE;
  };
  return kStreamsCanWait && copies_.empty() && works_.size() + parts_.size() > 0 &&
         std::all_of(works_.begin(), works_.end(), is_queued) &&
         std::all_of(parts_.begin(), parts_.end(),
                     [](const auto& part) { return part->is_in_queues(); });
}

void Operation::hold_current_stream() const {
  const CurrentStream stream(name_, device());
  for (const anycclWork_t work : works_) check(anycclWorkWaitStream(work, stream.get()), name_);
  for (const auto& part : parts_) part->hold_current_stream();
}

/// Nothing of it is left to do but in the library.
bool Operation::is_released() const {
  const std::lock_guard lock(mutex_);
  return released_;
}

void Operation::release_tensors() {
  for (const auto& part : parts_) part->release_tensors();
  if (current_stream(device()) != stream_) return;
  std::vector<at::Tensor> kept;  // freed without the lock
  std::vector<c10::Storage> memory;
  {
    const std::lock_guard lock(mutex_);
    kept.swap(kept_);
    memory.swap(memory_);
    written_.clear();
    released_ = parts_.empty() || std::all_of(parts_.begin(), parts_.end(),
                                              [](const auto& part) { return part->is_released(); });
  }
}

bool Operation::poll() {
  if (finished_.load(std::memory_order_acquire)) return true;
  for (const anycclWork_t work : works_) {
    int done = 0;
    if (anycclWorkTest(work, &done) == anycclSuccess && done == 0) return false;
  }
  for (const auto& part : parts_)
    if (!part->poll()) return false;
  finish();
  return true;
}

bool Operation::wait(std::chrono::milliseconds timeout) {
  if (finished_.load(std::memory_order_acquire)) return true;
  const bool limited = timeout.count() > 0;
  const auto deadline = limited ? deadline_after(timeout) : Clock::time_point::max();
  if (!limited && limit_.count() > 0)
    for (const anycclWork_t work : works_) anycclWorkLimit(work, limit_of(limit_));
  constexpr std::chrono::milliseconds kLeast{1};
  for (const anycclWork_t work : works_)
    if (!await(work, deadline)) return false;
  for (const auto& part : parts_)
    if (!part->wait(limited ? time_left(deadline, kLeast) : timeout)) return false;
  finish();
  return true;
}

/// Whether it is complete before `deadline`; without one, this returns when it is. Throws what
/// signals raise.
bool Operation::await(anycclWork_t work, Clock::time_point deadline) {
  const bool limited = deadline != Clock::time_point::max();
  if (!limited && !is_main_thread()) return anycclWorkWait(work), true;
  for (;;) {
    const auto next = Clock::now() + kSignalTime;
    const auto turn = is_main_thread() ? std::min(deadline, next) : deadline;
    const unsigned int time = limit_of(time_left(turn, std::chrono::milliseconds{1}));
    if (anycclWorkWaitFor(work, time) != anycclInProgress) return true;
    if (Clock::now() >= deadline) return false;
    check_signals();
  }
}

void Operation::wait_to_the_end() {
  for (const anycclWork_t work : works_) anycclWorkWait(work);  // finish() takes the error
  for (const auto& part : parts_) part->wait_to_the_end();
  finish();
}

void Operation::finish() {
  const std::lock_guard lock(mutex_);
  if (finished_.load(std::memory_order_relaxed)) return;
  for (const anycclWork_t work : works_) {
    int done = 0;
    const anycclResult_t code = anycclWorkTest(work, &done);
    if (code != anycclSuccess && error_ == nullptr) error_ = failure(code, name_);
  }
  for (const auto& part : parts_)
    if (error_ == nullptr) error_ = part->error();
  try {
    if (error_ == nullptr) copy_back(copies_);
  } catch (...) {
    error_ = std::current_exception();
  }
  ended_ = Clock::now();
  for (const auto& end : ends_) end();
  // Pairs with the acquires: a thread that sees it sees the results.
  finished_.store(true, std::memory_order_release);
}

std::exception_ptr Operation::error() const {
  return finished_.load(std::memory_order_acquire) ? error_ : nullptr;
}

int Operation::source() const {
  int rank = -1;
  if (works_.size() != 1) throw_backend_error("anyccl: only a single receive has a source rank");
  check(anycclWorkSource(works_[0], &rank), name_);
  return rank;
}

float Operation::seconds() const {
  return std::chrono::duration<float>(ended_ - begun_).count();
}

void Operation::Promise::keep(const std::exception_ptr& error) {
  if (!future) return;
  if (error != nullptr) return future->setError(error);
  // The value is complete. Callbacks come after what the current stream has, so let it be another.
  const auto& devices = future->devices();
  const PoolStream stream(devices.empty() ? c10::Device(c10::kCPU) : devices[0]);
  future->markCompleted(c10::IValue(std::move(value)));
}

void Operation::watch(Promise promise) {
  bool already_finished = false;
  {
    const std::lock_guard lock(mutex_);
    already_finished = finished_.load(std::memory_order_relaxed);
    if (promise.future && !already_finished) promises_.push_back(std::move(promise));
    if (!already_finished && watched_) return;
    watched_ = true;
  }
  if (already_finished) return promise.keep(error_);
  executor_->expect();
  if (!parts_.empty()) {  // one thread waits for all
    executor_->submit_expected([self = shared_from_this()] { self->settle(); });
    return;
  }
  // One more than works_: none of them settles it before all are watched.
  unnotified_.store(works_.size() + 1, std::memory_order_relaxed);
  struct Notice {
    std::shared_ptr<Operation> operation;
    static void on_completion(void* self) {
      const std::unique_ptr<Notice> notice(static_cast<Notice*>(self));
      Operation& operation = *notice->operation;
      // Ordered as the library's own completion is: settle() asks it again.
      if (operation.unnotified_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
      operation.executor_->submit_expected(
          [kept = std::move(notice->operation)] { kept->settle(); });
    }
  };
  for (const anycclWork_t work : works_) {
    auto* const notice = new Notice{shared_from_this()};
    if (anycclWorkNotify(work, &Notice::on_completion, notice) != anycclSuccess)
      Notice::on_completion(notice);
  }
  Notice::on_completion(new Notice{shared_from_this()});
}

void Operation::settle() {
  wait_to_the_end();  // complete, unless it has parts or could not be watched
  decltype(promises_) promises;
  {
    const std::lock_guard lock(mutex_);
    promises.swap(promises_);
  }
  for (Promise& promise : promises) {
    try {
      promise.keep(error_);
    } catch (...) {
      // A callback threw: torch has put it into the callback's own future.
    }
  }
}

void Operation::abandon() noexcept {
  try {
    if (!poll() && !is_released()) watch();
  } catch (...) {
    // Out of memory: the library still completes it, but results that no one reads are not copied.
  }
}

}  // namespace anyccl::torch
