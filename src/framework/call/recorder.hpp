#pragma once

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

/// What is known of one operation of this rank, now and after its end. Times are those of a
/// TickClock; 0: it has not come to that.
struct RecordedCall {
  std::uint64_t sequence = 0;            ///< Of a collective, see Position; 0: of a message.
  std::size_t count = 0;                 ///< As Call has it.
  const Algorithm* algorithm = nullptr;  ///< Of the catalog; null: of a message.
  std::uint64_t issued = 0, started = 0, ended = 0;
  Rank root{0};  ///< As Call has it.
  std::uint32_t tag = 0;
  Collective collective{};
  DType dtype{};
  ReduceOp op{};
  std::uint8_t protocol = 0;  ///< Of a collective.
  std::uint8_t parts = 0;     ///< As CallRecord has it.
  RecordState state{};
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
  explicit Recorder(std::size_t entries);

  /// Whether it keeps anything.
  bool is_on() const { return entries_ != 0; }
  /// A new record, of a call that is made now; its number, from 1.
  std::uint64_t add(const Call& call, RecordState state) {
    const std::uint64_t number = ++last_;
    if (entries_ == 0) return number;
    RecordedCall& record = at(number);
    record = {.count = call.count,
              .issued = clock_.now(),
              .root = call.root,
              .tag = call.tag,
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
    record.sequence = sequence;
    record.algorithm = algorithm;
    record.protocol = protocol;
    record.parts = what.parts;
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
  std::unique_ptr<RecordedCall[], Unmap> ring_;
};

}  // namespace anyccl
