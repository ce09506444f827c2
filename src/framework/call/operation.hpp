#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string_view>
#include <vector>

#include "anyccl/status.hpp"
#include "anyccl/types.hpp"
#include "base/deadline.hpp"

namespace anyccl {

/// Whether an operation may start at its turn, or only after Operation::open().
enum class Gate : bool { open, closed };

/// One issued operation. advance() is called by the holder of the communicator's progress lock;
/// anybody may ask done().
class Operation {
 public:
  virtual ~Operation() = default;
  /// Goes on as far as it can without waiting; true if anything moved. Sets done().
  virtual bool advance() = 0;
  /// The ranks it waits for now.
  virtual void awaited(std::vector<Rank>& ranks) const = 0;
  /// For messages, of one that is no collective.
  virtual std::string_view what() const { return "a send or receive"; }

  /// Operations with equal kinds do the same work, as far as the caller asked for it; see
  /// WaitPolicy. 0: none, as before its turn among collectives. Any thread.
  std::uint32_t kind() const { return kind_.load(std::memory_order_relaxed); }

  /// Before it is queued. A closed one keeps its place in the queue, and those behind it wait.
  void set(Gate gate) { open_.store(gate == Gate::open, std::memory_order_relaxed); }
  /// Its turn in a stream has come. Any thread.
  void open() { open_.store(true, std::memory_order_seq_cst); }  // then somebody may be woken
  /// Pairs with open(): a thread that sees it also sees everything before.
  bool is_open() const { return open_.load(std::memory_order_acquire); }

  /// It fails when `time` has passed from now on; 0: never does for that. What waits for its turn
  /// among collectives fails when it has passed from then on.
  void limit(std::chrono::milliseconds time) {
    limit_ = time;
    deadline_ = time.count() == 0 ? Deadline::never() : Deadline::in(time);
  }
  bool is_late() const { return !done() && deadline_.passed(); }
  std::chrono::milliseconds time_limit() const { return limit_; }

  bool done() const { return done_.load(std::memory_order_acquire); }
  /// Only after done().
  const Status& status() const { return status_; }
  void complete(Status status) {
    status_ = std::move(status);
    done_.store(
        true,
        std::memory_order_release);  // pairs with done(): then the result and status are there
  }

 protected:
  void set_kind(std::uint32_t kind) { kind_.store(kind, std::memory_order_relaxed); }
  void restart() { done_.store(false, std::memory_order_relaxed); }

 private:
  std::atomic<bool> done_{false}, open_{true};
  std::atomic<std::uint32_t> kind_{0};
  std::chrono::milliseconds limit_{0};
  Deadline deadline_ = Deadline::never();
  Status status_;
};

}  // namespace anyccl
