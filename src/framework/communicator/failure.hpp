#pragma once
// Threads see here whether a communicator has failed, and ask for its end, without its progress
// lock.

#include <atomic>
#include <mutex>

#include "anyccl/status.hpp"

namespace anyccl {

/// Why a communicator has failed. The first reason counts.
///
/// Threads: any.
class Failure {
 public:
  /// Asks for the end of the communicator, because of `why`. The holder of the progress lock looks
  /// at is_asked().
  void ask(const Status& why) {
    {
      const std::lock_guard lock(mutex_);
      if (why_.ok()) why_ = why;
    }
    asked_.store(true, std::memory_order_release);
  }
  bool is_asked() const { return asked_.load(std::memory_order_seq_cst); }

  /// The holder of the progress lock calls this before it tells the peers. False: it has happened
  /// already.
  bool begin(const Status& why) {
    const std::lock_guard lock(mutex_);
    if (!why_.ok() && happened_.load(std::memory_order_relaxed)) return false;
    if (why_.ok()) why_ = why;
    return true;
  }
  /// The peers have been told.
  void end() { happened_.store(true, std::memory_order_release); }

  /// Pairs with end(): why() is there.
  bool happened() const { return happened_.load(std::memory_order_acquire); }
  /// Ok until somebody has asked for the end or something has failed.
  Status why() const {
    const std::lock_guard lock(mutex_);
    return why_;
  }

 private:
  std::atomic<bool> happened_{false}, asked_{false};
  mutable std::mutex mutex_;
  Status why_;
};

}  // namespace anyccl
