#pragma once
// Everything that is issued becomes an Operation: collectives, messages, probes and waits for
// signals implement it. The holder of the progress lock advances it, and callers wait for it.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "anyccl/status.hpp"
#include "anyccl/types.hpp"
#include "base/deadline.hpp"
#include "framework/call/recorder.hpp"

namespace anyccl {

/// Whether an operation may start at its turn, or only after Operation::open().
struct Gate {
  static const Gate open, closed;
  /// The gate is closed until this stream comes to the operation.
  static constexpr Gate closed_by(std::uint8_t stream) { return {false, stream}; }
  /// The gate is closed until the input is there; no stream waits for the operation.
  static constexpr Gate closed_for_input() { return {false, 0, false}; }

  bool is_open;
  std::uint8_t stream = 0;  ///< As RecordedCall has it.
  bool in_stream = true;    ///< If it is closed: later work waits for the operation.
  bool operator==(Gate other) const { return is_open == other.is_open; }
};
inline constexpr Gate Gate::open{true}, Gate::closed{false};

/// The gate of an operation that is several calls: the first one that is closed.
inline Gate common_gate(std::span<const Gate> gates) {
  const auto closed = std::find(gates.begin(), gates.end(), Gate::closed);
  return closed == gates.end() ? Gate::open : *closed;
}

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
  virtual std::string what() const { return "a send or receive"; }
  /// What its communicator runs: itself, unless it is a call on memory of a device, which has
  /// copies around that.
  virtual Operation& on_host() { return *this; }
  bool is_on_device() { return &on_host() != this; }
  /// Whether it keeps the time limit for itself, as the operation on the host has not begun.
  virtual bool keeps_limit(std::chrono::milliseconds) { return false; }
  /// Another number each time that it moves.
  virtual std::uint64_t progress() const { return 0; }

  /// Operations with equal kinds do the same work, as far as the caller asked for it; see
  /// WaitPolicy. 0: none, as before its turn among collectives. Any thread.
  std::uint32_t kind() const { return kind_.load(std::memory_order_relaxed); }

  /// Before it is queued. A closed one keeps its place in the queue, and those behind it wait.
  void set(Gate gate) {
    gates_.store(gate == Gate::open ? 0 : 1, std::memory_order_relaxed);
    in_stream_ = gate == Gate::closed && gate.in_stream;
  }
  /// It starts at its turn in one more stream, too. Before the first open().
  void add_gate() { gates_.fetch_add(1, std::memory_order_relaxed); }
  /// Its turn in a stream has come; once for each of its gates. Any thread.
  void open() { gates_.fetch_sub(1, std::memory_order_seq_cst); }  // then somebody may be woken
  /// Pairs with open(): a thread that sees it also sees everything before.
  bool is_open() const {
    return gates_.load(std::memory_order_acquire) == 0 &&
           (stand_in_ == nullptr || stand_in_->is_open());
  }
  /// Before it is queued. The caller has `other` in place of this one: its gate and who waits for
  /// it count for both. It stays alive as long as this one.
  void stand_behind(const Operation& other) { stand_in_ = &other; }

  /// A thread has waited for it for so long that it looks for failures, and then no longer waits.
  /// Any thread.
  void begin_wait() { waits_.fetch_add(1, std::memory_order_relaxed); }
  void end_wait() { waits_.fetch_sub(1, std::memory_order_relaxed); }
  /// Whether something waits for it: a thread, or what follows it in a stream.
  bool is_awaited() const {
    return in_stream_ || waits_.load(std::memory_order_relaxed) > 0 ||
           (stand_in_ != nullptr && stand_in_->is_awaited());
  }

  /// It fails when `time` has passed from now on; 0: when the limit of its communicator has passed
  /// from its first look() on. An operation that waits for its turn among collectives has its limit
  /// from then on.
  void limit(std::chrono::milliseconds time) {
    limit_ = time;
    began_ = time.count() == 0 ? Clock::time_point() : Clock::now();
    quiet_since_ = {};
  }
  /// Longer than any wait, as ANYCCL_NO_TIMEOUT.
  static constexpr std::chrono::milliseconds kNoLimit{0xffffffff};
  /// The time limit of its own; 0: it has none.
  std::chrono::milliseconds time_limit() const { return limit_; }
  bool is_late() const { return limit_.count() > 0 && !done() && Clock::now() - began_ >= limit_; }

  using Clock = Deadline::Clock;
  /// The age of a wait, as a thread sees it that looks for failures.
  struct Age {
    Clock::duration total,  ///< Since its limit counts.
        quiet;              ///< Since it was last seen to move.
  };
  /// Says how long the operation has waited. The holder of the progress lock looks now and then;
  /// time in which nobody looked counts for a second at most: the process may have been stopped,
  /// and its peers with it.
  Age look(Clock::time_point now) {
    if (const auto gap = now - std::exchange(looked_, now) - kMostUnseen; gap.count() > 0) {
      if (limit_.count() == 0 && began_ != Clock::time_point()) began_ += gap;
      if (quiet_since_ != Clock::time_point()) quiet_since_ += gap;
    }
    if (began_ == Clock::time_point()) began_ = now;
    if (quiet_since_ == Clock::time_point()) {
      quiet_since_ = now;
      reported_ = false;
      seen_ = progress();
    } else if (const std::uint64_t seen = progress(); seen != seen_) {
      quiet_since_ = now;
      seen_ = seen;
    }
    return {now - began_, now - quiet_since_};
  }
  /// Nothing waits for it at the moment: the limit of its communicator counts anew when something
  /// does.
  void rest() {
    if (limit_.count() == 0) began_ = {};
    quiet_since_ = {};
  }
  /// A wait is reported once.
  bool is_reported() const { return reported_; }
  void set_reported() { reported_ = true; }

  /// From now on the record `number` ends when the operation does; `recorder` is alive until then.
  /// The caller holds the progress lock.
  void record_in(Recorder& recorder, std::uint64_t number) {
    recorder_ = &recorder;
    record_ = number;
    awaited_.store(0, std::memory_order_relaxed);
  }
  /// Whether it has a record and is not done.
  bool is_recorded() const { return recorder_ != nullptr; }
  /// The number of its record.
  std::uint64_t record_number() const { return record_; }

  /// For its record: a thread begins to wait for it at `ticks` of the recorder's clock. Any thread.
  void note_wait(std::uint64_t ticks) {
    if (awaited_.load(std::memory_order_relaxed) == 0)
      awaited_.store(ticks, std::memory_order_relaxed);  // of two at once either will do
  }

  bool done() const { return done_.load(std::memory_order_acquire); }
  /// Only after done().
  const Status& status() const { return status_; }
  /// Also ends its record. Wakes no thread that waits for it: ProgressLoop::ring() does.
  void complete(Status status) {
    if (recorder_ != nullptr) {
      if (const std::uint64_t since = awaited_.load(std::memory_order_relaxed); since != 0)
        recorder_->await(record_, since);
      std::exchange(recorder_, nullptr)->end(record_, status.ok());
    }
    status_ = std::move(status);
    done_.store(
        true,
        std::memory_order_release);  // pairs with done(): then the result and status are there
  }

 protected:
  void set_kind(std::uint32_t kind) { kind_.store(kind, std::memory_order_relaxed); }
  void restart() { done_.store(false, std::memory_order_relaxed); }

 private:
  static constexpr std::chrono::seconds kMostUnseen{1};

  std::atomic<bool> done_{false};
  std::atomic<int> gates_{0};  // that are closed
  std::atomic<int> waits_{0};
  bool in_stream_ = false;  // from its issue on
  const Operation* stand_in_ = nullptr;
  std::atomic<std::uint32_t> kind_{0};
  std::chrono::milliseconds limit_{0};
  Clock::time_point began_, quiet_since_;  // zero: at the first look()
  Clock::time_point looked_;               // at the last one
  std::uint64_t seen_ = 0;                 // progress(), at the last look()
  bool reported_ = false;
  Recorder* recorder_ = nullptr;           // until it is done
  std::uint64_t record_ = 0;               // its number there
  std::atomic<std::uint64_t> awaited_{0};  // see note_wait(); 0: by no thread
  Status status_;
};

}  // namespace anyccl
