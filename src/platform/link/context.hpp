#pragma once
// A context is the end that one rank has of a communicator, over all of its links: the first
// problem, how many frames wait, and the doorbell that ends the rank's sleep. Threads that work for
// other communicators write to it too when they read a link that they share with it.

#include <atomic>
#include <cstdint>
#include <mutex>
#include <utility>

#include "anyccl/status.hpp"
#include "platform/link/doorbell.hpp"
#include "platform/link/frame.hpp"

namespace anyccl::link {

/// The facts that one rank of a communicator knows, whatever link they came over.
class Context {
 public:
  Context(Rank rank, ContextKey name) : me(rank), key(name) {}

  const Rank me;
  const ContextKey key;

  // --- problems: any thread ---------------------------------------------------------------------
  /// The first thing that went wrong stays. `is_vague`: it only says that two calls differ, and a
  /// peer that knows more may say so.
  void note(Status what, bool is_vague = false) {
    const std::lock_guard lock(mutex_);
    if (!problem_.ok() && (!vague_ || is_vague)) return;
    problem_ = std::move(what);
    vague_ = is_vague;
    has_problem_.store(true, std::memory_order_release);
  }
  Status problem() const {
    if (!has_problem_.load(std::memory_order_acquire)) return {};
    const std::lock_guard lock(mutex_);
    return problem_;
  }
  bool is_vague() const {
    const std::lock_guard lock(mutex_);
    return vague_;
  }

  // --- arrivals ---------------------------------------------------------------------------------
  /// Frames that came and are not consumed yet.
  std::atomic<std::size_t> arrivals{0};
  /// Collective operations before this one are of no interest.
  std::atomic<std::uint64_t> oldest{0};

  // --- sleep: see Transport ---------------------------------------------------------------------
  /// From now on note_delivered() rings. missed() says whether something was delivered since the
  /// last call.
  void prepare_sleep() {
    missed_ = news_.exchange(false, std::memory_order_relaxed);
    // Before the links are looked at once more, whose locks pair with those in note_delivered().
    sleeping_.store(true, std::memory_order_seq_cst);
  }
  void end_sleep() { sleeping_.store(false, std::memory_order_relaxed); }
  /// The holder of the progress lock could not look at a link, because another thread reads it.
  void miss() { missed_ = true; }
  bool missed() const { return missed_; }
  /// A thread of another communicator has brought something for this one. It holds the link's lock.
  void note_delivered() {
    news_.store(true, std::memory_order_relaxed);
    if (sleeping_.load(std::memory_order_seq_cst)) doorbell.ring();
  }
  Doorbell doorbell;

 private:
  mutable std::mutex mutex_;
  Status problem_;
  bool vague_ = false;
  std::atomic<bool> has_problem_{false};
  std::atomic<bool> sleeping_{false};
  std::atomic<bool> news_{false};  // Delivered since the last prepare_sleep().
  bool missed_ = false;            // since prepare_sleep()
};

}  // namespace anyccl::link
