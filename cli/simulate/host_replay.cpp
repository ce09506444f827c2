#include "simulate/host_replay.hpp"

#include <algorithm>
#include <deque>
#include <numeric>
#include <queue>
#include <random>
#include <span>
#include <utility>

#include "base/error.hpp"
#include "simulate/host_costs.hpp"

namespace anyccl::cli {

namespace {

/// More are the same again.
constexpr std::uint32_t kMostTiles = 128;

/// How many orders of ranks on their cores are tried; nobody knows the true one. With many ranks
/// orders differ less.
std::uint32_t orders_for(std::uint32_t ranks) {
  return ranks <= 16 ? 9 : 3;
}

/// A publication of one rank.
struct Published {
  bool is_made = false;
  double at_s = 0;
  std::uint32_t lane = 0, round = 0;
  std::span<const ReaderOf> readers = {};
};

struct Lane {
  std::uint32_t tile = 0, round = 0, pc = 0, arrived = 0;
  bool is_finished = false;
  const BoundPlan* bound = nullptr;
};

/// The event at the end of a rank's work.
struct Effect {
  enum Kind : std::uint8_t { none, start, arrival, end_of_step } kind = none;
  std::uint32_t lane = 0;
};

struct RankState {
  std::vector<Lane> lanes;
  std::vector<std::uint32_t> posted;  ///< By lane: progress that others have seen.
  std::vector<Published> publications;
  std::deque<std::pair<std::uint32_t, double>> ring;  ///< Numbers and bytes, the oldest first.
  double ring_used = 0;
  Effect effect;
  std::uint32_t scan = 0;  ///< The lane that is looked at.
  bool has_moved = false;  ///< In this pass over the lanes.
  bool is_done = false, has_started = true;
  double started_s = 0, done_s = 0;
  double waits_since_s = -1;  ///< Below 0: it does not wait.
};

struct Core {
  std::vector<std::uint32_t> ranks;
  std::size_t turn = 0;
  bool is_working = false, is_idle = false;
};

/// The ranks in an order by chance, the same for the same seed.
std::vector<std::uint32_t> order_of(std::uint32_t ranks, std::uint32_t seed) {
  std::vector<std::uint32_t> order(ranks);
  std::iota(order.begin(), order.end(), 0U);
  std::minstd_rand random(seed);
  for (std::uint32_t i = ranks; i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  return order;
}

class HostReplay {
 public:
  HostReplay(const HostPlans& plans, const HostCosts& costs, const HostPlans::Bound& call,
             std::uint32_t tiles, ReplayLog* log)
      : plans_(plans),
        costs_(costs),
        call_(call),
        tiles_(tiles),
        log_(log),
        ranks_(plans.ranks()),
        cores_(costs.cores()) {}

  /// `touches`: as replay_on_host().
  Result<ReplayResult> run(bool touches, std::uint32_t seed) && {
    start(touches, seed);
    while (!queue_.empty() && done_ < ranks_.size() && !is_stuck()) {
      const Due due = queue_.top();
      queue_.pop();
      now_ = due.at_s;
      run_core(due.core);
    }
    if (done_ < ranks_.size())
      return error(Code::internal, "{} of {} ranks of a host wait for ever for each other",
                   ranks_.size() - done_, ranks_.size());
    ReplayResult result;
    for (const RankState& rank : ranks_) {
      result.done.push_back(rank.done_s);
      result.seconds = std::max(result.seconds, rank.done_s - rank.started_s);
    }
    return result;
  }

 private:
  struct Due {
    double at_s = 0;
    std::uint32_t core = 0;
    bool operator<(const Due& other) const {  // the top of the queue is the earliest
      return at_s > other.at_s || (at_s == other.at_s && core > other.core);
    }
  };

  const Plan& plan(std::uint32_t r) const { return plans_.plan(r).plan; }
  std::uint32_t publications_of(std::uint32_t r) const { return plan(r).publications[r]; }
  StepMoves moves(std::uint32_t r, const Lane& lane) const {
    return {plan(r), *lane.bound, lane.pc, call_.line_bytes};
  }

  void start(bool touches, std::uint32_t seed) {
    const std::vector<std::uint32_t> order = order_of(plans_.ranks(), seed);
    for (std::size_t i = 0; i < order.size(); ++i)
      cores_[i % cores_.size()].ranks.push_back(order[i]);
    for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
      RankState& rank = ranks_[r];
      const std::uint32_t lanes = std::min(call_.lanes, tiles_);
      rank.lanes.resize(lanes);
      rank.posted.resize(lanes);
      rank.publications.resize(std::size_t{tiles_} * publications_of(r));
      for (std::uint32_t i = 0; i < lanes; ++i) enter(r, rank.lanes[i], i);
      rank.has_started = !touches;
    }
    for (std::uint32_t k = 0; k < cores_.size(); ++k) queue_.push({0, k});
  }

  void enter(std::uint32_t r, Lane& lane, std::uint32_t tile) {
    lane.tile = tile;
    lane.pc = lane.arrived = 0;
    lane.bound = tile + 1 == call_.tiles ? &call_.last[r] : &call_.full[r];
  }

  /// Nobody works, and all have looked in vain since anything happened.
  bool is_stuck() const {
    return in_vain_ > 2 * (ranks_.size() + cores_.size()) &&
           std::none_of(cores_.begin(), cores_.end(), [](const Core& c) { return c.is_working; });
  }

  /// Ends the work of the rank whose turn it is, if it has some. Starts its next work, or passes
  /// the core on.
  void run_core(std::uint32_t k) {
    Core& core = cores_[k];
    const std::uint32_t r = core.ranks[core.turn];
    RankState& rank = ranks_[r];
    core.is_working = false;
    if (rank.effect.kind != Effect::none) take_effect(r);
    if (!rank.has_started) return start_work(k, r, costs_.touch_s(is_shared(k)), {Effect::start});
    while (!rank.is_done) {
      if (rank.scan == rank.lanes.size()) {
        rank.scan = 0;
        if (!std::exchange(rank.has_moved, false)) break;
        if (all_finished(rank)) finish(rank);
        continue;
      }
      Lane& lane = rank.lanes[rank.scan];
      Moved moved;
      Effect effect{Effect::none, rank.scan};
      if (lane.is_finished || !step(r, lane, moved, effect)) {
        ++rank.scan;
        continue;
      }
      rank.has_moved = true;
      if (effect.kind == Effect::none) continue;
      const double seconds = costs_.seconds(moved, is_shared(k));
      if (log_ != nullptr) note_step(r, lane, seconds);
      return start_work(k, r, seconds, effect);
    }
    if (!rank.is_done && rank.waits_since_s < 0) rank.waits_since_s = now_;
    pass_core_on(k);
  }

  static bool all_finished(const RankState& rank) {
    return std::all_of(rank.lanes.begin(), rank.lanes.end(),
                       [](const Lane& lane) { return lane.is_finished; });
  }
  /// Ends the rank now. Wakes idle cores, as publications that it has read may be released.
  void finish(RankState& rank) {
    rank.is_done = true;
    rank.done_s = now_;
    ++done_;
    wake_idle_cores();
  }

  bool is_shared(std::uint32_t k) const {
    for (std::uint32_t i = 0; i < cores_.size(); ++i)
      if (i != k && cores_[i].is_working) return true;
    return false;
  }

  void start_work(std::uint32_t k, std::uint32_t r, double seconds, Effect effect) {
    ranks_[r].effect = effect;
    cores_[k].is_working = true;
    queue_.push({now_ + seconds, k});
  }

  /// The rank of this core waits, or is done: the next one looks.
  void pass_core_on(std::uint32_t k) {
    Core& core = cores_[k];
    ++in_vain_;
    if (core.ranks.size() == 1) {
      core.is_idle = true;
      return;
    }
    core.turn = (core.turn + 1) % core.ranks.size();
    queue_.push({now_ + costs_.turn_s(), k});
  }

  void wake_idle_cores() {
    in_vain_ = 0;
    for (std::uint32_t k = 0; k < cores_.size(); ++k)
      if (std::exchange(cores_[k].is_idle, false)) queue_.push({now_, k});
  }

  void take_effect(std::uint32_t r) {
    RankState& rank = ranks_[r];
    const Effect effect = std::exchange(rank.effect, {});
    if (effect.kind == Effect::start) {
      rank.has_started = true;
      rank.started_s = now_;
    } else if (effect.kind == Effect::arrival) {
      ++rank.lanes[effect.lane].arrived;
    } else {
      leave_step(r, rank.lanes[effect.lane], effect.lane);
    }
    wake_idle_cores();
  }

  /// What can be done of the step of a lane. False: it waits. Without an effect it takes no time.
  bool step(std::uint32_t r, Lane& lane, Moved& moved, Effect& effect) {
    const Plan& p = plan(r);
    if (lane.pc == p.steps.size()) return next_tile(r, lane);
    const PlanStep& s = p.steps[lane.pc];
    const BoundStep& b = lane.bound->steps[lane.pc];
    const StepMoves step_moves = moves(r, lane);
    for (; lane.arrived < s.operands && !step_moves.is_send(); ++lane.arrived) {
      const Ref& ref = p.refs[s.first_ref + lane.arrived];
      if (ref.rank != r && !publication(ref, lane).is_made) return false;
      note_message(r, ref, lane, b);
      if (!step_moves.streams()) continue;
      moved = step_moves.of_operand(lane.arrived);
      effect.kind = Effect::arrival;
      return true;
    }
    if ((s.flags & PlanStep::publish) && !has_room(r, lane, s, b)) return false;
    if (!step_moves.streams()) moved = step_moves.of_all();
    effect.kind = Effect::end_of_step;
    return true;
  }

  /// Gives the lane its next tile, or finishes it. False: another lane still has an earlier tile.
  bool next_tile(std::uint32_t r, Lane& lane) {
    const auto lanes = static_cast<std::uint32_t>(ranks_[r].lanes.size());
    if (lane.tile + lanes >= tiles_) return lane.is_finished = true;
    for (const Lane& other : ranks_[r].lanes)
      if (!other.is_finished && other.tile < lane.tile) return false;
    ++lane.round;
    enter(r, lane, lane.tile + lanes);
    return true;
  }

  /// Returns the publication that `ref` means, in the tile of this lane.
  const Published& publication(const Ref& ref, const Lane& lane) const {
    return ranks_[ref.rank]
        .publications[std::size_t{lane.tile} * publications_of(ref.rank) + ref.publication];
  }

  /// Whether all readers are known to be past this publication, so that its slot and its place in
  /// the ring may be used again: rule 3 of plan.hpp, within one operation. Without `posts_each` a
  /// reader is known to be past it only when it is done.
  bool is_released(std::uint32_t publisher, std::uint32_t publication) const {
    const Published& p = ranks_[publisher].publications[publication];
    return std::all_of(p.readers.begin(), p.readers.end(), [&](const ReaderOf& reader) {
      const RankState& peer = ranks_[reader.rank];
      if (peer.is_done) return true;
      return call_.posts_each &&
             peer.posted[p.lane] >= reader.tick + p.round * plan(reader.rank).ticks;
    });
  }

  /// Whether the slot is free, and the ring has room. Removes released publications from the ring
  /// where room is needed.
  bool has_room(std::uint32_t r, const Lane& lane, const PlanStep& s, const BoundStep& b) {
    const std::uint32_t number = lane.tile * publications_of(r) + s.publication;
    if (number >= plans_.slots() && !is_released(r, number - plans_.slots())) return false;
    if (b.out_bytes <= call_.line_bytes) return true;
    RankState& rank = ranks_[r];
    const auto ring = static_cast<double>(plans_.ring_bytes());
    const auto bytes = static_cast<double>(b.out_bytes);
    for (; !rank.ring.empty() && rank.ring_used + bytes > ring; rank.ring.pop_front()) {
      if (!is_released(r, rank.ring.front().first)) return false;
      rank.ring_used -= rank.ring.front().second;
    }
    return true;
  }

  /// Publishes the result of the step, posts progress, and moves the lane to its next step.
  void leave_step(std::uint32_t r, Lane& lane, std::uint32_t lane_number) {
    RankState& rank = ranks_[r];
    const PlanStep& s = plan(r).steps[lane.pc];
    const BoundStep& b = lane.bound->steps[lane.pc];
    if (s.flags & PlanStep::publish) {
      const std::uint32_t number = lane.tile * publications_of(r) + s.publication;
      rank.publications[number] = {true, now_, lane_number, lane.round,
                                   lane.bound->outs[b.first_out].readers};
      if (b.out_bytes > call_.line_bytes) {
        rank.ring.emplace_back(number, static_cast<double>(b.out_bytes));
        rank.ring_used += static_cast<double>(b.out_bytes);
      }
    }
    if (call_.posts_each && s.tick != 0)
      rank.posted[lane_number] = lane.round * plan(r).ticks + s.tick;
    ++lane.pc;
    lane.arrived = 0;
  }

  /// Logs the wait that ends now, and the step if it combines operands.
  void note_step(std::uint32_t r, const Lane& lane, double seconds) {
    RankState& rank = ranks_[r];
    if (rank.waits_since_s >= 0 && now_ > rank.waits_since_s)
      log_->waits.push_back({{rank.waits_since_s, now_}, r, lane.pc});
    rank.waits_since_s = -1;
    if (plan(r).steps[lane.pc].flags & PlanStep::combine)
      log_->additions.push_back({{now_, now_ + seconds}, r, lane.pc});
  }

  void note_message(std::uint32_t r, const Ref& ref, const Lane& lane, const BoundStep& b) {
    if (log_ == nullptr || ref.rank == r) return;
    const auto bytes = static_cast<double>(lane.bound->wanted[b.first_wanted + lane.arrived].bytes);
    log_->messages.push_back({{publication(ref, lane).at_s, now_}, ref.rank, r, bytes});
  }

  const HostPlans& plans_;
  const HostCosts& costs_;
  const HostPlans::Bound& call_;
  const std::uint32_t tiles_;
  ReplayLog* const log_;
  std::vector<RankState> ranks_;
  std::vector<Core> cores_;
  std::priority_queue<Due> queue_;
  std::size_t done_ = 0, in_vain_ = 0;
  double now_ = 0;
};

/// The replay that takes the median time, over orders of ranks where they share cores.
Result<ReplayResult> median_replay(const HostPlans& plans, const HostCosts& costs,
                                   const HostPlans::Bound& call, std::uint32_t tiles,
                                   bool touches) {
  std::vector<ReplayResult> results;
  const std::uint32_t orders = costs.turn_s() > 0 ? orders_for(plans.ranks()) : 1;
  for (std::uint32_t seed = 1; seed <= orders; ++seed) {
    ANYCCL_TRY(ReplayResult result,
               HostReplay(plans, costs, call, tiles, nullptr).run(touches, seed));
    results.push_back(std::move(result));
  }
  const auto middle = results.begin() + static_cast<std::ptrdiff_t>(results.size() / 2);
  std::nth_element(results.begin(), middle, results.end(),
                   [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
  return std::move(*middle);
}

}  // namespace

Result<ReplayResult> replay_on_host(const HostPlans& plans, const Machine& machine,
                                    std::size_t bytes, bool touches, ReplayLog* log) {
  const Calibration& calibration = *machine.calibration;
  const HostPlans::Bound call = plans.bind(bytes);
  const HostCosts costs(calibration, *calibration.find(machine.inside), plans, call);
  const std::uint32_t tiles = std::min(call.tiles, kMostTiles);
  if (log != nullptr)
    ANYCCL_CHECK(HostReplay(plans, costs, call, tiles, log).run(touches, 1).status());
  ANYCCL_TRY(ReplayResult result, median_replay(plans, costs, call, tiles, touches));
  if (call.tiles == tiles) return result;
  ANYCCL_TRY(const ReplayResult half, median_replay(plans, costs, call, tiles / 2, touches));
  const double more = (result.seconds - half.seconds) / (tiles - tiles / 2) * (call.tiles - tiles);
  result.seconds += more;
  for (double& done : result.done) done += more;
  return result;
}

}  // namespace anyccl::cli
