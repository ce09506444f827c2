#pragma once
// The symbolic machine behind simulate(). Private to verify/.

#include <bitset>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "algorithm/verify/simulate.hpp"

namespace anyccl::verify {

/// Vector clock: for each lane of each rank, how many of its events are known to have happened.
using Clock = std::vector<std::uint32_t>;
inline void join(Clock& into, const Clock& other) {
  for (std::size_t i = 0; i < into.size(); ++i) into[i] = into[i] < other[i] ? other[i] : into[i];
}

inline Slice source(const PlanStep& s) {
  return {Space(s.src_space), s.src, s.count, s.src_stride};
}
inline Slice destination(const PlanStep& s) {
  return {Space(s.dst_space), s.dst, s.count, s.dst_stride};
}
inline bool has(const PlanStep& s, PlanStep::Flag flag) {
  return (s.flags & flag) != 0;
}

class Engine {
 public:
  Engine(std::span<const Operation> operations, const Setting& setting, Terms& terms);
  Result<Outcome> run();

 private:
  struct Read {  // by one rank, of one publication
    std::size_t rank = 0;
    std::uint32_t left = 0;  // operands that still have to read it
    std::uint32_t when = 0;  // the reading lane's event of the last one
  };
  struct Publication {
    bool made = false, lent = false;
    std::uint32_t number = 0, tile = 0, index = 0, step = 0, depth = 0;
    std::vector<std::uint32_t> cells = {};  // lent: the memory
    std::vector<TermId> values = {};
    std::vector<Read> reads =
        {};  // what the plans of its readers do, whatever its publisher thinks
    Clock when = {};
  };
  struct Occupant {  // of a slot
    std::int64_t operation = -1;
    std::uint32_t number = 0;
  };
  struct Post {
    std::uint32_t tick = 0;
    Clock when = {};
  };
  struct Lane {
    std::size_t rank = 0, lane = 0;
    std::uint32_t tile = 0, pc = 0, depth = 0;
    std::int64_t published_by = -1;  // schedule step of the last publication
    bool done = false;
    Clock now = {};
    std::vector<TermId> memory = {};
    std::vector<std::uint32_t> lent = {};       // numbers of what this tile lent
    std::vector<std::vector<Post>> posts = {};  // by operation
  };
  struct Member {
    std::size_t rank = 0, operation = 0;
    bool done = false;
    std::vector<Lane> lanes = {};
    std::vector<Occupant> slots = {};
    std::vector<std::vector<Publication>> publications = {};  // by operation, by number
    std::vector<Clock> finished = {};                         // by operation
    std::int64_t all_finished = -1;  // the last operation that everyone is known to have finished
  };
  struct Blocker {  // why something does not move
    Status why = {};
    bool cause = false;  // it never will, whatever the others do
  };

  // engine.cpp: what happens
  void begin(Member& m);
  void begin_tile(Lane& lane);
  bool advance(Lane& lane);
  /// Returns false while peers have to read what the tile lent (over rendezvous), and if a result
  /// is wrong, which ends the run.
  bool end_tile(Lane& lane);
  std::bitset<kMaxRanks> wanted_ranks(const Schedule& s, Origin want) const;
  static std::string wanted_text(const Schedule& s, Origin want);
  bool finish(Member& m);
  bool is_ready(Lane& lane, const PlanStep& step);
  std::vector<std::vector<TermId>> load_operands(Lane& lane, const PlanStep& step);
  std::vector<TermId> receive(Lane& lane, const Ref& ref, std::size_t at, std::uint32_t count);
  /// Replaces the operands in `values` by what they make. Returns false if they must not be
  /// combined, which ends the run.
  bool combine(Lane& lane, const PlanStep& step, std::vector<std::vector<TermId>>& values);
  /// Ends the run if a peer may still read a lent cell that the step overwrites.
  bool store(Lane& lane, const PlanStep& step, const std::vector<std::vector<TermId>>& values);
  /// Ends the run if a peer may still read what the slot had before.
  bool publish(Lane& lane, const PlanStep& step, const std::vector<std::vector<TermId>>& values);
  /// Does nothing for a step that reads no peer, or if the plan does not post each step.
  void post(Lane& lane, const PlanStep& step);
  void trace(const Lane& lane, const PlanStep& step,
             const std::vector<std::vector<TermId>>& values);

  // happens_before.cpp: what has surely happened before
  Publication* find_publication(const Lane& lane, const Ref& ref);
  std::uint32_t number(const Lane& lane, const Ref& ref) const;
  std::size_t slot(std::size_t operation, std::uint32_t number) const;
  const Clock* find_post(std::size_t reader, std::size_t operation, std::size_t lane,
                         std::uint32_t tick) const;
  bool is_released(const Member& m, std::size_t operation, const Publication& p,
                   Clock* known) const;
  /// Whether the step may take its slot. Returns false also while the publication that takes the
  /// slot before it has not been made.
  bool is_slot_free(Lane& lane, const PlanStep& step, Clock* known);
  bool lent_is_read(Lane& lane, const PlanStep* step, Clock* known);
  std::vector<std::uint32_t> cells_written(const Lane& lane, const PlanStep& step) const;
  /// Returns the cells of the publication in its order, and kNobody in place of those that no peer
  /// reads.
  std::vector<std::uint32_t> published_cells(const Lane& lane, const PlanStep& step) const;
  const Read* unread(const Clock& known, const Publication& p) const;
  const Read* unread(const Lane& lane, const Clock& known, const Publication& p,
                     std::uint32_t cell) const;

  // diagnose.cpp: words
  /// Says why a member waits; a lane whose wait can never end comes before the others.
  Blocker blocker(Member& m);
  Blocker blocker(Lane& lane);
  /// Says why `ref` finds no message: it is not sent yet or, as a cause, lies where its reader does
  /// not look.
  Blocker missing_message(Lane& lane, const Ref& ref, const PlanStep& step);
  Blocker missing_release(const Member& m, std::size_t operation, const Publication& p,
                          const std::string& what);
  std::string position_text(std::size_t rank) const;
  /// Names the rank and the step of its schedule, but not the tile.
  std::string where(const Lane& lane) const;
  std::string when(std::size_t operation, std::uint32_t tile) const;
  std::string target_text(const Lane& lane, const PlanStep& step) const;

  const Plan& plan(std::size_t rank, std::size_t operation) const {
    return (*operations_[operation].plans)[rank];
  }
  const Plan& plan(const Lane& lane) const { return plan(lane.rank, member(lane).operation); }
  const Member& member(const Lane& lane) const { return members_[lane.rank]; }
  Member& member(const Lane& lane) { return members_[lane.rank]; }
  std::size_t self(std::size_t rank, std::size_t lane) const {
    return rank * setting_.lanes + lane;
  }
  std::uint32_t run_of(std::size_t operation, std::uint32_t tile) const;
  /// Ends the run with this error. Always returns false, for callers to pass on.
  bool fail(Status s);

  // [publisher][publication]: who reads it with how many operands, in one set of plans.
  using Readers = std::vector<std::vector<std::vector<Read>>>;
  std::span<const Operation> operations_;
  Setting setting_;
  Terms& terms_;
  std::vector<Readers> readers_;  // by operation
  std::vector<Member> members_;
  std::vector<std::uint32_t> sent_;
  Clock learned_;  // of the step that is looked at
  Clock before_;   // what the lane of the current step knew before it received anything
  Outcome outcome_;
  Status error_;
};

}  // namespace anyccl::verify
