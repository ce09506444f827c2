#pragma once
// Each communicator records its last operations, for dumps, traces and metrics. Every call comes
// here, so what it runs is inline.

#include <limits>
#include <memory>
#include <numeric>
#include <vector>

#include "base/tick_clock.hpp"
#include "framework/call/call.hpp"
#include "framework/call/call_totals.hpp"

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
  /// A collective has its sequence here, a message or probe its tag, a put the index of its signal.
  std::uint64_t position = 0;
  std::size_t count = 0;                 ///< As Call has it; of AllToAllv all that is sent.
  const Algorithm* algorithm = nullptr;  ///< One of the catalog; null: it has none, as a message.
  std::uint64_t issued = 0, started = 0, ended = 0;
  Rank root{0};  ///< As Call has it; of others the peer, or kAnySource.
  /// Ticks after `issued`, rounded, when a thread began to wait for it; infinite: none has.
  float awaited = kNever;
  Collective collective{};
  DType dtype{};
  OperatorNumber op = ReduceOp::sum;
  std::uint8_t protocol = 0;  ///< A collective has one.
  std::uint8_t parts = 0;     ///< As CallRecord has it.
  RecordState state{};
  OtherKind other{};        ///< If it is not `none`, `collective` says nothing.
  std::uint8_t stream = 0;  ///< Its number, see HostStream; 0: of none.

  static constexpr float kNever = std::numeric_limits<float>::infinity();
};
static_assert(sizeof(RecordedCall) == 64, "a cache line each");

/// What a Recorder kept at one moment, to be read without its lock.
struct RecordedCalls {
  std::uint64_t first = 1;  ///< Number of the first of `calls`.
  std::vector<RecordedCall> calls;
  TickClock::Scale scale;
};

/// The last operations of one rank of a communicator, in a ring of a fixed size that is never read
/// while nothing goes wrong, and the sums over all. Its memory is touched only as far as it has
/// been used.
///
/// Threads: the holder of the communicator's progress lock.
class Recorder {
 public:
  /// The next power of two, if it is none. Without memory, and with 0 entries, it counts calls and
  /// keeps nothing.
  /// `is_traced`: every operation has its duration, also one that ends without waiting.
  explicit Recorder(std::size_t entries, bool is_traced = false);

  /// What is known of a call besides its arguments.
  struct Facts {
    const Algorithm* algorithm = nullptr;  ///< These four as RecordedCall has them.
    std::uint64_t position = 0;
    std::uint8_t protocol = 0, parts = 0;
    OtherKind other{};
    std::uint8_t stream = 0;
    bool blocks = false;      ///< Its caller waits for it from the beginning on,
    std::uint64_t began = 0;  ///< which was then, see begin(); 0: now.
    int ranks = 0;            ///< An AllToAllv has a count for each.
  };

  /// Whether it keeps anything.
  bool is_on() const { return entries_ != 0; }
  bool is_traced() const { return is_traced_; }
  /// For Facts, of a call that begins now and is recorded later; 0: when does not matter.
  std::uint64_t begin() const { return is_traced_ ? clock_.ticks() : 0; }
  /// A new record, of a call that is made now; its number, from 1.
  std::uint64_t add(const Call& call, RecordState state, const Facts& facts) {
    return add(like(call, facts), facts.position, state, facts.blocks, facts.began);
  }
  /// Adds a copy of `call`, a record without times: what calls that repeat themselves have in
  /// common is made once.
  std::uint64_t add(const RecordedCall& call, std::uint64_t position, RecordState state,
                    bool blocks, std::uint64_t began) {
    const std::uint64_t number = ++last_;
    if (entries_ == 0) return number;
    if (number == sum_at_) [[unlikely]]
      sum_up();
    const std::uint64_t now = clock_.ticks();
    const std::uint64_t issued = began != 0 ? began : now;
    RecordedCall& made = at(number);
    made = call;
    made.position = position;
    made.issued = issued;
    if (state != RecordState::issued) made.started = issued;
    if (state >= RecordState::done) made.ended = now;
    if (blocks) made.awaited = 0;
    made.state = state;
    return number;
  }
  static RecordedCall like(const Call& call, const Facts& facts) {
    const bool has_counts = call.collective == Collective::all_to_all_v && facts.ranks > 0;
    return {.count = has_counts ? std::accumulate(call.send_counts, call.send_counts + facts.ranks,
                                                  std::size_t{0})
                                : call.count,
            .algorithm = facts.algorithm,
            .root = call.root,
            .collective = call.collective,
            .dtype = call.dtype,
            .op = call.op,
            .protocol = facts.protocol,
            .parts = facts.parts,
            .other = facts.other,
            .stream = facts.stream};
  }
  void set_stream(std::uint64_t number, std::uint8_t stream) {
    if (keeps(number)) at(number).stream = stream;
  }
  void start(std::uint64_t number) {
    if (!keeps(number)) return;
    at(number).started = clock_.ticks();
    at(number).state = RecordState::running;
  }
  void end(std::uint64_t number, bool ok) {
    if (!keeps(number)) return;
    at(number).ended = clock_.ticks();
    at(number).state = ok ? RecordState::done : RecordState::failed;
  }
  /// Notes in its record that a thread has waited for it since `since`.
  void await(std::uint64_t number, std::uint64_t since) {
    if (!keeps(number)) return;
    const std::uint64_t issued = at(number).issued;
    at(number).awaited = since > issued ? static_cast<float>(since - issued) : 0;
  }

  /// The number of the newest record; 0: there was none.
  std::uint64_t last() const { return last_; }
  /// The number of the oldest record that it keeps; past the last: it keeps none.
  std::uint64_t first() const { return last_ < entries_ ? 1 : last_ - entries_ + 1; }
  /// Whether it is not overwritten yet.
  bool keeps(std::uint64_t number) const { return number + entries_ > last_ && number <= last_; }
  /// One that it keeps.
  const RecordedCall& operator[](std::uint64_t number) const {
    return ring_[number & (entries_ - 1)];
  }
  /// All that it keeps.
  RecordedCalls copy() const;
  /// The sums over all operations so far. One that was still open when as many others had been made
  /// as are kept is in them without its time and its failure.
  CallTotals totals() const;
  const TickClock& clock() const { return clock_; }

 private:
  struct Unmap {
    std::size_t bytes;
    void operator()(RecordedCall* ring) const;
  };
  void sum_up();
  RecordedCall& at(std::uint64_t number) { return ring_[number & (entries_ - 1)]; }

  TickClock clock_;
  std::size_t entries_ = 0;
  std::uint64_t last_ = 0;
  std::uint64_t sum_at_ = 0;  // the record of this number takes the place of one that is in no sum
  CallTotals sums_;           // of all before sum_at_ - entries_
  bool is_traced_;
  std::unique_ptr<RecordedCall[], Unmap> ring_;
};

}  // namespace anyccl
