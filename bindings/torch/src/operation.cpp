#include "operation.hpp"

#include <ATen/core/grad_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "errors.hpp"
#include "waiting.hpp"

namespace anyccl::torch {

void copy_back(const std::vector<CopyBack>& copies) {
  if (copies.empty()) return;
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  for (const CopyBack& copy : copies) copy.to.copy_(copy.from);
}

Operation::~Operation() {
  for (const anycclWork_t work : works_) anycclWorkFree(work);
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
  const auto deadline = limited ? after(timeout) : Clock::time_point::max();
  if (!limited && limit_.count() > 0)
    for (const anycclWork_t work : works_) anycclWorkLimit(work, limit_of(limit_));
  constexpr std::chrono::milliseconds kLeast{1};
  for (const anycclWork_t work : works_)
    if (!await(work, deadline)) return false;
  for (const auto& part : parts_)
    if (!part->wait(limited ? left(deadline, kLeast) : timeout)) return false;
  finish();
  return true;
}

/// Whether it is complete before `deadline`.
bool Operation::await(anycclWork_t work, Clock::time_point deadline) {
  const bool limited = deadline != Clock::time_point::max();
  if (!limited && !is_main_thread()) return anycclWorkWait(work), true;
  for (;;) {
    const auto next = Clock::now() + kSignalTime;
    const auto turn = is_main_thread() ? std::min(deadline, next) : deadline;
    const unsigned int time = limit_of(left(turn, std::chrono::milliseconds{1}));
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
  if (error != nullptr)
    future->setError(error);
  else
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
    static void arrive(void* self) {
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
    if (anycclWorkNotify(work, &Notice::arrive, notice) != anycclSuccess) Notice::arrive(notice);
  }
  Notice::arrive(new Notice{shared_from_this()});
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
    if (!poll()) watch();
  } catch (...) {
    // Out of memory: the library still completes it, but results that no one reads are not copied.
  }
}

}  // namespace anyccl::torch
