#pragma once
// Ranks that are left of a communicator that has failed agree here on who they are. carry_on()
// calls it.

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/deadline.hpp"
#include "runtime/members/members.hpp"

namespace anyccl {

/// How ranks that are left of a communicator that has failed agree who they are, over its links:
/// all that return from a round have the same decision, whoever dies meanwhile, even if some of
/// them have returned and speak no more. Ranks that die crash; hosts that are cut off from each
/// other both find that the other is gone.
///
/// A rank says to all others what it knows and whom it follows: the lowest rank that it does not
/// know to be gone. That one decides when all that it waits for follow it, or takes over the
/// decision that one of them has taken from an earlier leader. A rank takes the decision of the
/// leader that it follows only, and tells all others before it returns, so that the next leader
/// finds it. After Chandra and Toueg, "Unreliable failure detectors for reliable distributed
/// systems", JACM 43(2), 1996, with the ends of links, which are never wrong about a process, in
/// place of a majority.
///
/// Threads: one at a time, the owner of `busy`.
class Agreement {
 public:
  /// What this rank brings to a round.
  struct Ballot {
    bool formed = false;          ///< It has the communicator of the last decision.
    std::uint64_t completed = 0;  ///< See Survivors::completed().
    std::uint64_t settings = 0;   ///< Their hash.
    Status problem;               ///< Why it cannot take part.
  };
  struct Decision {
    std::uint32_t round = 0;      ///< Another one each time.
    std::vector<bool> gone;       ///< By rank.
    bool formed = false;          ///< All that are left have the communicator of the last decision.
    std::uint64_t completed = 0;  ///< The least of their ballots.
    Status problem;               ///< The first one.
  };

  /// Among the ranks of `parent`. Errors: unsupported, of too many ranks.
  static Result<std::shared_ptr<Agreement>> among(Comm& parent, const Inheritance& inheritance);
  ~Agreement();
  /// This rank takes no part, and the others are not to wait for it: its links to them may stay,
  /// for other communicators.
  static void decline(const Comm& parent, const Inheritance& inheritance);

  /// The ranks that are left do without this one, whether it lives or not.
  void leave_out(Rank rank) { gone_[uindex(rank)] = true; }
  /// A round. One that has ended in an error is gone on with. Errors: timeout, naming ranks that
  /// have not come, or a second later where all have come and do not agree; remote_error: the
  /// others do without this rank; aborted: stop().
  Result<Decision> decide(const Ballot& mine, Deadline deadline);
  /// Ends decide(), from any thread.
  void stop() { stopped_.store(true, std::memory_order_relaxed); }
  /// The communicator of this decision is used. Any thread, also of survivors().
  void note_survivors(const Decision& decision);
  /// Ranks of the communicator that has failed, in the order of the other one; none: there is none
  /// yet.
  std::vector<Rank> survivors() const;

  std::mutex busy;
  /// The communicator of the last decision, where the round after it has not ended in time: others
  /// may find in that round that all have theirs, and use it. With `busy`.
  CommPtr kept;

 private:
  struct Peer;
  /// What a rank says to all others. The first part is sent as it is in memory, then the ranks that
  /// are gone, a bit for each.
  struct Statement {
    struct Fixed {
      std::uint32_t round = 0;
      std::int32_t follows = kDecided;  ///< The leader whose decision the rank will take.
      std::uint64_t completed = 0, settings = 0;
      std::uint32_t formed = 0;
      std::int32_t rank = 0;  ///< That has the problem.
      Problem problem;
      std::uint32_t unused = 0;
    } fixed;
    std::vector<bool> gone;

    bool is_decision() const { return fixed.follows == kDecided; }
  };
  static constexpr std::int32_t kDecided = -1;

  /// Has no channels yet: among() opens them.
  Agreement(Comm& parent, std::shared_ptr<link::Context> context);
  void begin(const Ballot& mine);
  void follow(Rank leader);
  void send_to_all(const Statement& statement);
  /// Takes what the others have said. Those that have left or ended without a decision in this
  /// round are gone from now on.
  void listen();
  void look_for_leavers();
  /// Records a statement of `peer` and the ranks that it knows to be gone; ignores a malformed one.
  void take_statement(Peer& peer, std::span<const std::byte> payload);
  Rank leader() const;
  std::optional<Statement> find_decision();
  std::optional<Statement> lead();
  /// Makes the decision of the leader from the ballots of all that are left.
  Statement decision_of_all() const;
  Decision adopt(const Statement& decision);
  Status allow_more(std::optional<Deadline>& last) const;
  std::string absentees() const;
  /// Sleeps for a millisecond at most, and has the link to the leader connect if it is not.
  void wait();

  const std::weak_ptr<Comm> parent_;
  const Rank me_;
  const RankNames names_;
  const std::shared_ptr<link::Context> context_;
  std::vector<std::unique_ptr<Peer>> peers_;           // By rank; null for this one.
  std::vector<bool> gone_;                             // By rank, also of those that are left out.
  std::vector<bool> gone_before_;                      // In the last decision.
  std::optional<Rank> refused_by_;                     // That does without this rank.
  bool is_decided_ = true;                             // The last round.
  Statement mine_;                                     // In this round.
  std::optional<Statement> taken_;                     // The decision of the leader in this round.
  std::chrono::steady_clock::time_point next_look_{};  // For silent hosts, and ranks that left.
  std::atomic<bool> stopped_{false};                   // See stop(); nothing comes with it.
  mutable std::mutex mutex_;                           // Guards survivors_.
  std::vector<Rank> survivors_;
};

}  // namespace anyccl
