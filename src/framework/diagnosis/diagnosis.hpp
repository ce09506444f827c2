#pragma once
// A communicator asks here, when a wait takes long, whether it can still end.

#include <array>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/deadline.hpp"
#include "framework/collective/execution.hpp"
#include "framework/diagnosis/wait_report.hpp"
#include "framework/membership/membership.hpp"
#include "framework/membership/routes.hpp"
#include "framework/message/message_matcher.hpp"

namespace anyccl {

/// Why an operation that does not move may never move: peers that died, left, failed, or called
/// something else. Never on the way of a fast operation.
///
/// Threads: the holder of the communicator's progress lock.
class Diagnosis {
 public:
  /// Everything is borrowed.
  Diagnosis(const Membership& me, const Routes& routes, MessageMatcher& messages)
      : me_(me.rank),
        names_(me.names),
        membership_(me),
        routes_(routes),
        messages_(messages),
        report_(me, routes) {}

  /// The first problem that the peers report.
  Status poll_control();
  /// What poll_control() says, unless it is_in_mismatch_grace(). Asked once more before a peer is
  /// said to be gone: what it said last may have come just now, and says why.
  Status reported();
  /// For a rank that waits for nothing: which calls up to `sequence` differ from those of peers,
  /// what peers report, or which of them was gone when this rank gave to it, as far as is known
  /// here.
  Status glance(std::uint64_t sequence) const;
  /// Says why `operation` never will be done, as far as can be seen now, and logs once that it
  /// waits, when that takes long. If a peer that it waits for is gone, it goes on first, and may
  /// be done then. `collective`: the same operation, if it is one that has started.
  Status check_stalled(Operation& operation, const Execution* collective);
  /// Whether a long wait was logged since this was asked last.
  bool take_warning() { return std::exchange(has_warned_, false); }
  /// Not ok: the time limit of `operation` is over: its own, or else the communicator's, which
  /// counts only while something waits for it. Names the ranks that it waits for.
  Status check_timeout(Operation& operation, const Execution* collective) const;
  /// From now on a thread waits for all that is open.
  void wait_for_all() { waits_for_all_ = true; }
  /// While a receive waits for a message of any rank: whether one can still come. Goes on with all
  /// messages first, if all peers are gone.
  Status check_any_source();
  /// Whether these peers may still come, as far as the transports know.
  Status absence(std::span<const Rank> wanted) const;
  /// Peers that wait for this rank see that it is in no collective, but waits for a message of
  /// `from`; without that they see it no more.
  void show_receive(std::optional<Rank> from) {
    if (from == shown_receive_) return;
    shown_receive_ = from;
    for (Transport* t : routes_.transports)
      t->show_receive(from.has_value(), from.value_or(Rank{0}));
  }
  const WaitReport& report() const { return report_; }
  /// A transport sees that a peer is in another call before it knows which one. The peer's record
  /// is on its way and says more, so it gets a moment.
  /// `unexplained`: no record says yet how the calls differ.
  bool is_in_mismatch_grace(const Status& problem, bool unexplained = false);

 private:
  /// Says for how long the host of a silent peer acknowledged nothing; empty in other states.
  std::string reason(PeerState state) const;
  bool is_waited_for(Operation& operation, const Execution* collective) const;
  void warn(Operation& operation, const Execution* collective);
  Status compare_calls(const CallRecord& mine, Status& unexplained) const;
  Status compare_known_calls(Rank peer, std::uint64_t sequence) const;
  /// Errors: remote_error if this rank gave data to `peer` when that was gone already.
  Status unread_by(Rank peer) const;
  Status compare_earlier_calls(Rank peer, std::uint64_t sequence, Status& unexplained) const;

  const Rank me_;
  const RankNames& names_;
  const Membership& membership_;
  const Routes& routes_;
  MessageMatcher& messages_;
  const WaitReport report_;
  bool waits_for_all_ = false, has_warned_ = false;
  std::optional<Rank> shown_receive_;  // see show_receive()
  using Clock = std::chrono::steady_clock;
  Clock::time_point mismatch_since_;
  /// The last warning: when, since when that operation had not moved, and how long there is no
  /// further one.
  struct Warned {
    Clock::time_point at, since;
    Clock::duration pause{0};
  };
  std::array<Warned, 2> warned_;  // of messages, and of collectives
};

}  // namespace anyccl
