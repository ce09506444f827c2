#pragma once
// Issued operations that may not be complete: the library's works, and the tensors that they use.

#include <c10/core/Stream.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "anyccl/anyccl.h"
#include "executor.hpp"
#include "torch.hpp"
#include "waiting.hpp"

namespace anyccl::torch {

struct CopyBack {
  at::Tensor to, from;
};
/// Copies all, whatever the thread's gradient mode; returns when they are there, also on a device,
/// which all of them are on.
void copy_back(const std::vector<CopyBack>& copies);

/// Shared by the c10d::Work that a program holds and, once watched, by the library's callback.
/// Any thread may call anything. No tensor is released while a lock is held.
class Operation : public std::enable_shared_from_this<Operation> {
 public:
  /// Its tensors are on `device`, and it is in the stream that is current there.
  Operation(std::shared_ptr<Executor> executor, const char* name, c10::Device device);
  ~Operation();
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  // While it is put together, by one thread.
  void add(anycclWork_t work) { works_.push_back(work); }
  /// It is complete only when `part` is. An operation with parts has nothing else.
  void add(std::shared_ptr<Operation> part) { parts_.push_back(std::move(part)); }
  void add(CopyBack copy) { copies_.push_back(std::move(copy)); }
  /// The limit of wait(): an operation that takes longer fails. 0: only the limit of its call.
  void limit(std::chrono::milliseconds time) { limit_ = time; }
  /// Keeps it as long as this lives, with the memory that it has now: a program may give it another
  /// one.
  void keep(const at::Tensor& tensor) {
    kept_.push_back(tensor);
    if (tensor.has_storage()) memory_.push_back(tensor.storage());
  }
  /// It writes this plain tensor where it is.
  void writes(const at::Tensor& tensor);
  /// Whether it may write, or with `by_copies` copy results, to memory of `tensor`.
  bool may_write(const at::Tensor& tensor, bool by_copies) const;
  bool has_copies() const { return !copies_.empty(); }
  /// The device of its tensors.
  c10::Device device() const { return stream_ ? stream_->device() : c10::Device(c10::kCPU); }
  bool is_finished() const { return finished_.load(std::memory_order_acquire); }
  /// It is in queues of a device, which streams can wait for, and has nothing to copy afterwards.
  bool is_in_queues() const;
  /// Later work of the device's current stream waits until it is complete; not the caller, if it is
  /// in queues. Throws if the group has failed.
  void hold_current_stream() const;
  /// After hold_current_stream(): frees the tensors that it keeps, if the current stream is that of
  /// the call, in which memory of its temporaries is used again; else keeps them to the end.
  void release_tensors();
  /// Called once, when it is complete: soon after if it is watched, else at the next poll or wait.
  void at_end(std::function<void()> fn) { ends_.push_back(std::move(fn)); }

  /// True when it is complete or has failed, and copies are in place.
  bool poll();
  /// Returns when poll() is true; false if that takes longer. 0: an operation that takes longer
  /// than its own limit fails. Throws what signals raise; the operation goes on then.
  bool wait(std::chrono::milliseconds timeout);
  /// The error of a complete operation; null if it has not failed.
  std::exception_ptr error() const;
  /// The source of a complete receive.
  int source() const;
  /// Seconds from begin to completion, of a complete operation.
  float seconds() const;

  struct Promise {
    c10::intrusive_ptr<c10::ivalue::Future> future;  ///< It is null if nobody has one.
    std::vector<at::Tensor> value;

    void keep(const std::exception_ptr& error);
  };
  /// Completes by itself, in a thread of the executor, and keeps the promise.
  void watch(Promise promise = {});
  /// No thread will ask any more: it completes by itself.
  void abandon() noexcept;

 private:
  static bool await(anycclWork_t work, Clock::time_point deadline);
  void wait_to_the_end();
  bool is_released() const;
  /// Takes the first error of the complete works, or copies results back; then calls the functions
  /// of at_end(). Only the first call does it.
  void finish();
  /// Waits until it is complete, and keeps the promises.
  void settle();

  const std::shared_ptr<Executor> executor_;
  const char* const name_;
  const std::optional<c10::Stream> stream_;  // absent on the CPU
  std::chrono::milliseconds limit_{0};
  std::vector<anycclWork_t> works_;
  std::vector<std::shared_ptr<Operation>> parts_;
  std::vector<CopyBack> copies_;
  std::vector<at::Tensor> kept_;
  std::vector<c10::Storage> memory_;
  c10::SmallVector<std::pair<std::uintptr_t, std::uintptr_t>, 1> written_;  // from and to
  std::vector<std::function<void()>> ends_;
  const Clock::time_point begun_ = Clock::now();
  Clock::time_point ended_;

  mutable std::mutex mutex_;  // of finish(), written_, and of the members below
  bool watched_ = false, released_ = false;
  std::exception_ptr error_;
  std::vector<Promise> promises_;
  std::atomic<bool> finished_ =
      false;  // the release in finish() publishes error_, ended_ and copies
  std::atomic<std::size_t> unnotified_ = 0;
};

/// Asynchronous collectives of a group that may be under way. The library runs them in their order;
/// copies before and after them keep this order by waiting. Any thread.
class OpenOperations {
 public:
  void add(const std::shared_ptr<Operation>& operation);
  /// Returns when those are over that write where `tensor` is: all, if it is about to be copied or
  /// on a device, as the library copies that, else those that copy their results. Throws what
  /// signals raise.
  void finish_before(const at::Tensor& tensor, bool is_copied);

 private:
  /// With the lock. Returns all that it has looked at, finished or not, to be freed without it.
  std::vector<std::shared_ptr<Operation>> forget_finished();

  std::mutex mutex_;
  std::vector<std::weak_ptr<Operation>> open_;
  std::size_t many_ = 16;                 // the number at which finished ones are looked for
  std::atomic<std::size_t> copying_ = 0;  // of them, those that copy their results
};

}  // namespace anyccl::torch
