#pragma once

#include <limits>
#include <memory>

#include "base/tick_clock.hpp"
#include "framework/call/call.hpp"

namespace anyccl {

struct Algorithm;

enum class RecordState : std::uint8_t {
  issued,   ///< It waits for its turn, or for its stream.
  running,  ///< It waits for peers, if for anything.
  done,
  failed,
};

/// What an operation is that is neither a collective nor a message.
enum class OtherKind : std::uint8_t { none, put, signal, signal_wait, probe };

/// What is known of one operation of this rank, now and after its end. Times are those of a
/// TickClock; 0: it has not come to that.
struct RecordedCall {
  /// Of a collective its sequence, of a message or probe its tag, of a put the index of its signal.
  std::uint64_t position = 0;
  std::size_t count = 0;                 ///< As Call has it.
  const Algorithm* algorithm = nullptr;  ///< Of the catalog; null: of a message.
  std::uint64_t issued = 0, started = 0, ended = 0;
  Rank root{0};  ///< As Call has it; of others the peer, or kAnySource.
  /// Ticks after `issued`, rounded, when a thread began to wait for it; infinite: none has.
  float awaited = kNever;
  Collective collective{};
  DType dtype{};
  ReduceOp op{};
  std::uint8_t protocol = 0;  ///< Of a collective.
  std::uint8_t parts = 0;     ///< As CallRecord has it.
  RecordState state{};
  OtherKind other{};  ///< If it is not `none`, `collective` says nothing.

  static constexpr float kNever = std::numeric_limits<float>::infinity();
};
static_assert(sizeof(RecordedCall) == 64, "a cache line each");

/// The last operations of one rank of a communicator, in a ring of a fixed size that is never read
/// while nothing goes wrong. Its memory is touched only as far as it has been used.
///
/// Threads: the holder of the communicator's progress lock.
class Recorder {
 public:
  /// The next power of two, if it is none. Without memory, and with 0 entries, it counts and keeps
  /// nothing.
  /// `is_traced`: every operation has its duration, also one that ends without waiting.
  explicit Recorder(std::size_t entries, bool is_traced = false);

  /// Whether it keeps anything.
  bool is_on() const { return entries_ != 0; }
  bool is_traced() const { return is_traced_; }
  /// For note_blocking(), of a call that begins now and is recorded later; 0: when does not matter.
  std::uint64_t begin() const { return is_traced_ ? clock_.now() : 0; }
  /// A new record, of a call that is made now; its number, from 1.
  std::uint64_t add(const Call& call, RecordState state) {
    const std::uint64_t number = ++last_;
    if (entries_ == 0) return number;
    RecordedCall& record = at(number);
    record = {.position = call.tag,
              .count = call.count,
              .issued = clock_.now(),
              .root = call.root,
              .collective = call.collective,
              .dtype = call.dtype,
              .op = call.op,
              .state = state};
    if (state != RecordState::issued) record.started = record.issued;
    if (state >= RecordState::done) record.ended = record.issued;
    return number;
  }
  /// The same, of a collective.
  std::uint64_t add(const Call& call, RecordState state, const CallRecord& what,
                    std::uint64_t sequence, const Algorithm* algorithm, std::uint8_t protocol) {
    const std::uint64_t number = add(call, state);
    if (entries_ == 0) return number;
    RecordedCall& record = at(number);
    record.position = sequence;
    record.algorithm = algorithm;
    record.protocol = protocol;
    record.parts = what.parts;
    return number;
  }
  /// The same, of a call that is neither a collective nor a message; `call` has its peer, size and tag.
  std::uint64_t add(OtherKind kind, const Call& call, RecordState state) {
    const std::uint64_t number = add(call, state);
    if (entries_ != 0) at(number).other = kind;
    return number;
  }
  void start(std::uint64_t number) {
    if (!keeps(number)) return;
    at(number).started = clock_.now();
    at(number).state = RecordState::running;
  }
  void end(std::uint64_t number, bool ok) {
    if (!keeps(number)) return;
    at(number).ended = clock_.now();
    at(number).state = ok ? RecordState::done : RecordState::failed;
  }
  /// The caller of the newest one has waited for it from `begin` on, which see, or, if that is 0,
  /// since it was added.
  void note_blocking(std::uint64_t begin) {
    if (entries_ == 0) return;
    RecordedCall& record = at(last_);
    record.awaited = 0;
    if (begin != 0) record.issued = record.started = begin;
  }
  /// A thread has waited for it since `since`.
  void await(std::uint64_t number, std::uint64_t since) {
    if (!keeps(number)) return;
    const std::uint64_t issued = at(number).issued;
    at(number).awaited = since > issued ? static_cast<float>(since - issued) : 0;
  }

  /// Of the newest record; 0: there was none.
  std::uint64_t last() const { return last_; }
  /// Of the oldest one that it keeps; past the last: it keeps none.
  std::uint64_t first() const { return last_ < entries_ ? 1 : last_ - entries_ + 1; }
  /// Whether it is not overwritten yet.
  bool keeps(std::uint64_t number) const { return number + entries_ > last_ && number <= last_; }
  /// One that it keeps.
  const RecordedCall& operator[](std::uint64_t number) const {
    return ring_[number & (entries_ - 1)];
  }
  const TickClock& clock() const { return clock_; }

 private:
  struct Unmap {
    std::size_t bytes;
    void operator()(RecordedCall* ring) const;
  };
  RecordedCall& at(std::uint64_t number) { return ring_[number & (entries_ - 1)]; }

  TickClock clock_;
  std::size_t entries_ = 0;
  std::uint64_t last_ = 0;
  bool is_traced_;
  std::unique_ptr<RecordedCall[], Unmap> ring_;
};

}  // namespace anyccl
