#pragma once
// The executor: runs one collective call at one rank.
//
// 1. A lane is a program counter over the plan's steps, for one tile at a time. Up to `lanes` tiles
//    are in flight; a lane takes its next tile only when no other lane has an earlier one, so
//    publications come to a slot in order.
// 2. advance() goes on until every lane waits for a peer. It never blocks, allocates or locks, but
//    for v-forms, which bind each tile anew.
// 3. A step completes in order: its operands have arrived, are combined, and are published. What
//    has been done of it is in the lane (arrived, computed, routes_done), so advance() may return
//    anywhere.
// 4. The caller's buffers belong to the operation until done(). Peers may read them until then:
//    settle() waits for those that do.

#include <memory>
#include <vector>

#include "framework/call/around_call.hpp"
#include "framework/call/operation.hpp"
#include "framework/call/operators.hpp"
#include "framework/call/recorder.hpp"
#include "framework/collective/fusion.hpp"
#include "framework/collective/portions.hpp"
#include "framework/collective/routed_plan.hpp"
#include "framework/collective/stages.hpp"
#include "platform/reduce/reduce.hpp"

namespace anyccl {

/// Everything about a call that the next call with the same arguments can use again.
struct PreparedCall {
  const RoutedPlan* routed = nullptr;
  Geometry geometry;
  std::size_t tile_bytes = 0;
  std::uint32_t lanes = 1;
  ReduceFn kernel = nullptr;  ///< Null where nothing is reduced, or by the user's own function.
  std::shared_ptr<const Operator> op;  ///< One that the user created, if it is one.
  InputStage input;                    ///< Before the plan reads the input.
  ResultStage result;                  ///< When the plan is done.
  // Sizes of calls with several types, see ElementTypes, are of elements of the sum, or, with
  // portions, of the input.
  Portions portions;
  std::size_t element = 1;  ///< Bytes.
  /// The call's buffers at this rank: as the plan has them, and the program, in its types.
  struct {
    std::size_t input = 0, output = 0, given = 0, result = 0;
  } bytes;
  CallRecord record;      ///< Without its sequence.
  RecordedCall recorded;  ///< The part that is the same for all its calls.
  std::uint32_t digest = 0;
  Protocols protocols;                     ///< Those it may have,
  std::uint16_t line_bytes = 0;            ///< and so, what Outgoing has;
  bool only_lines = false;                 ///< in tiles that fit a slot, where they can.
  const CallSettings* settings = nullptr;  ///< Its configuration, if it has one.
  bool posts_each =
      false;  ///< Progress after each step: slots come round again, or peers may lend.
  bool only_gives = false;  ///< This rank reads nothing of its peers.
  bool consumes = false;    ///< Some transport wants to know what was consumed.
  std::size_t scratch_bytes = 0;
  struct {
    std::size_t at = 0, bytes = 0;
  } landing;                ///< In the scratch memory: see destination_for().
  std::size_t largest = 0;  ///< Bytes of the largest publication of this rank.
  BoundPlan full, last;     ///< All tiles but the last, and the last one. v-forms do not use them.

  Labels labels() const { return {digest, line_bytes}; }
  /// See protocol_of().
  Protocol protocol() const { return static_cast<Protocol>(recorded.protocol); }
};

/// Where a collective call stands among all of its communicator.
struct Position {
  std::uint64_t sequence = 0;  ///< From 1.
  std::uint64_t history = 0;   ///< Digest of all calls before it.
};

/// One collective call on its way: a resumable interpreter of its plan, with a
/// program counter per lane. It may be used again for the next call.
class Execution final : public Operation {
 public:
  /// `route[r]` reaches rank r; `all` are those of every transport of the communicator.
  Execution(Rank me, const std::vector<Publications*>& route, const std::vector<Publications*>& all)
      : me_(uindex(me)), route_(route), all_(all) {}

  /// Makes the plan's input, and announces the call at once if this rank only gives. `prepared`
  /// stays alive and unchanged until done(); `scratch`: room for this execution alone.
  void start(const PreparedCall& prepared, const Call& call, Position position, std::byte* scratch);

  /// It will run again, and is not done until then.
  void again() {
    restart();
    set_kind(0);
  }

  /// After start(). Null: there is nothing around it.
  void end_with(AroundCall* around) { around_ = around; }
  /// What is around it says that the result is wrong. Then it is never done by itself.
  const Status& problem() const { return problem_; }

  bool advance() override;
  /// Does what advance() does, but may spin for a fraction of a microsecond for what is missing.
  bool advance_patiently();
  void awaited(std::vector<Rank>& ranks) const override;
  /// Returns a hash of where all lanes are, which changes when one of them moves.
  std::uint64_t progress() const override;
  std::uint64_t sequence() const { return position_.sequence; }
  /// "step 2 of 6 of all_reduce/ring, tile 3 of 8"
  std::string place() const;
  /// The call of this rank.
  CallRecord record() const {
    CallRecord record = prepared_->record;
    record.sequence = position_.sequence;
    record.history = position_.history;
    return record;
  }

 private:
  struct Lane {
    std::uint32_t tile = 0, pc = 0, arrived = 0, index = 0, round = 0;
    std::uint32_t routes_done = 0;  ///< Routes of the current publication that are done.
    std::uint32_t handed = 0;       ///< Bits: which routes are given the stored result as it lies.
    static_assert(kMostRoutes <= 32, "a bit of `handed` for each");
    bool computed = false, finished = false;
    const BoundPlan* bound = nullptr;
    std::byte* base[3] = {};                 ///< By Space, at this tile.
    BoundPlan own;                           ///< v-forms: bound anew for each tile.
    std::vector<const std::byte*> operands;  ///< By operand: what arrived, or own memory.
    std::vector<const void*> sources, portions;
    std::vector<ReaderOf> readers;
  };
  /// Where a result goes: own memory, and room in each transport that publishes it.
  struct Targets {
    std::byte* own = nullptr;
    std::uint32_t outs = 0;
    std::byte* out[kMostRoutes] = {};
  };
  /// Makes the lists of the lane long enough for the step with the most operands.
  void make_room(Lane& lane) const;
  void enter(Lane& lane, std::uint32_t tile);
  bool has_next(const Lane& lane) const {
    return lane.tile + prepared_->lanes < prepared_->geometry.tiles();
  }
  bool next_tile(Lane& lane);
  bool step(Lane& lane);
  bool receive(Lane& lane, const PlanStep& step, const BoundStep& bound);
  bool send(Lane& lane, const PlanStep& step, const BoundStep& bound);
  /// Does what receive() leaves of a step: combines, stores and publishes, as its flags say. False:
  /// some transport has no room yet.
  bool compute_and_publish(Lane& lane, const PlanStep& step, const BoundStep& bound);
  bool compute_for_peers(Lane& lane, const PlanStep& step, const BoundStep& bound, Targets targets);
  static bool hand_over(Publications& publications, const Outgoing& out, const std::byte* from,
                        bool lendable);
  void compute(Lane& lane, const PlanStep& step, const BoundStep& bound, const Targets& targets);
  void combine(Lane& lane, const PlanStep& step, const BoundStep& bound, const Targets& targets);
  static void move(Lane& lane, const BoundStep& bound, std::uint32_t operand,
                   const Targets& targets);
  std::byte* landing(const Lane& lane, const PlanStep& step, const BoundStep& bound,
                     std::uint32_t operand) const;
  static const std::byte* direct(const Lane& lane, const BoundStep& bound) {
    return lane.base[static_cast<int>(bound.direct_space)] + bound.direct;
  }
  std::byte* destination_for(const Lane& lane, const PlanStep& step, const BoundStep& bound,
                             std::uint32_t operand) const;
  bool is_missing(const Lane& lane, const PlanStep& step, std::uint32_t operand) const;
  void consume(const Lane& lane, const PlanStep& step, const BoundStep& bound);
  /// Tells all transports that this rank has read all up to the tick of `step` in this lane.
  void post(const Lane& lane, const PlanStep& step);
  /// Goes to the next step of the lane. Tells transports what was consumed, and posts progress,
  /// where the call needs that.
  void leave_step(Lane& lane, const PlanStep& step, const BoundStep& bound);
  Incoming incoming(const Lane& lane, const BoundStep& bound, std::uint32_t operand) const;
  Outgoing outgoing(Lane& lane, const PlanStep& step, const BoundStep& bound, std::size_t route);
  bool absent(const Lane& lane, std::size_t bytes) const {
    return prepared_->geometry.varies() && lane.tile > 0 && bytes == 0;
  }
  void combine_operands(const void* const* sources, std::uint32_t count, std::size_t bytes,
                        std::byte* dst, std::byte* second) const;
  void announce();
  void announce_first();
  /// Tells all transports that the steps are done; once no peer needs this rank any more, makes the
  /// result and completes, unless there is a problem(). Returns whether no peer does.
  bool settle();

  std::uint32_t me_;
  const std::vector<Publications*>& route_;
  const std::vector<Publications*>& all_;
  const PreparedCall* prepared_ = nullptr;
  const Plan* plan_ = nullptr;
  const std::byte* input_ = nullptr;
  std::byte *output_ = nullptr, *result_ = nullptr;  // where the plan writes; the program's
  Position position_;
  AroundCall* around_ = nullptr;
  Status problem_;
  std::byte* scratch_ = nullptr;
  std::vector<Lane> lanes_;
  std::vector<const void*> leaves_;  // where they are; kept for its memory
  std::uint32_t running_ = 0;
  std::uint16_t poll_budget_ = 1;
  bool announced_ = false, posted_ = false;
};

}  // namespace anyccl
