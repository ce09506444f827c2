#include <algorithm>
#include <limits>
#include <utility>

#include "algorithm/plan/lending.hpp"
#include "algorithm/plan/liveness.hpp"
#include "algorithm/plan/matching.hpp"
#include "algorithm/plan/plan.hpp"
#include "algorithm/schedule/print.hpp"
#include "base/error.hpp"

namespace anyccl {
namespace {

constexpr std::uint32_t kMost = std::numeric_limits<std::uint16_t>::max();

Status check_limits(Collective collective, const std::vector<Matching>& matchings) {
  auto most = static_cast<std::uint32_t>(matchings.size());
  for (const Matching& w : matchings) most = std::max({most, w.publications, w.ticks, w.widest});
  if (most <= kMost) return {};
  return error(
      Code::unsupported,
      "{} over {} ranks: a plan has at most {} ranks, publications, operands of a step and "
      "steps that read a peer, and this one has {}; use another algorithm",
      name(collective), matchings.size(), kMost, most);
}

// First it meets every rank, then it finishes.
class Lowering {
 public:
  // `matchings`: of all ranks when it finishes, and of each when it is met; of other ranks only
  // what they have with this one. Fused, all sends are taken to be staged; not fused, they may be
  // lent as the author was told.
  Lowering(const Schedule& mine, const std::vector<Matching>& matchings, bool fuse)
      : matchings_(matchings),
        fuse_(fuse),
        mine_(fuse ? without_guard_copies(mine, number_) : mine),
        my_matching_(matching_of(mine_)),
        liveness_(mine_),
        lending_(mine_, my_matching_, matchings, liveness_),
        plan_{.schedule = mine} {
    operand_.resize(mine_.steps.size());
    plan_.published.resize(my_matching_.publications);
    plan_.readers.resize(my_matching_.publications);
  }

  // Ranks come in their order.
  Status match_with(const Schedule& peer) {
    ANYCCL_CHECK(match_receives(peer));
    return match_sends(peer);
  }

  // Emits all steps, once every rank has been met, and moves the plan out. `slots` only decides
  // whether this rank posts each step.
  Result<Plan> finish(std::uint32_t slots) {
    std::uint32_t most = 0;
    for (const Matching& w : matchings_) {
      plan_.publications.push_back(w.publications);
      most = std::max(most, w.publications);
    }
    plan_.ticks = static_cast<std::uint16_t>(my_matching_.ticks);
    emit();
    if (fuse_) drop_unused_scratch();
    const Contract& contract = mine_.contract;
    plan_.everyone = contract.everyone();
    // Whether a peer may lend depends on its memory, which is not known here. So anyone who
    // publishes bytes is taken to lend: the answer must be the same on all ranks.
    plan_.posts_each = most > slots || (most > 0 && contract.has_bytes());
    return std::move(plan_);
  }

 private:
  // Pairs each entry of my receives with what the peer sends: messages match in step order.
  Status match_receives(const Schedule& peer) {
    const auto sent = matchings_[uindex(peer.rank)].sent_to(mine_.rank);
    const auto received = my_matching_.received_from(peer.rank);
    for (std::size_t m = 0; m < received.size(); ++m) {
      const Receipt& r = received[m];
      const Step& step = mine_.steps[r.step];
      const std::size_t piece = step.op == Op::recv ? r.piece : 0;
      if (m == sent.size())
        return error(Code::internal, "{} receives {} from rank {}, which sends it nothing more",
                     at(r.step), chunk_text(mine_, step.dst, piece), index(peer.rank));
      ANYCCL_CHECK(compare(r.step, piece, peer, sent[m]));
      operand_[r.step].resize(step.peers.size());
      operand_[r.step][r.piece] = {
          {static_cast<std::uint16_t>(peer.rank), static_cast<std::uint16_t>(sent[m].publication),
           sent[m].offset},
          publication_of(peer, peer.steps[sent[m].step], sent[m].piece)};
    }
    if (sent.size() == received.size()) return {};
    const Message& lost = sent[received.size()];
    return error(Code::internal, "{} sends {} to rank {}, which never receives it",
                 step_text(peer, lost.step),
                 chunk_text(peer, peer.steps[lost.step].src, lost.piece), index(mine_.rank));
  }

  // Ok if `m` has as many chunks as the piece of `step` that receives it, each of the same size
  // class. Their origins may differ.
  Status compare(std::uint32_t step, std::size_t piece, const Schedule& peer,
                 const Message& m) const {
    const Slice &dst = mine_.steps[step].dst, &src = peer.steps[m.step].src;
    if (src.count != dst.count)
      return error(Code::internal, "{} receives {} but {} sends {}", at(step),
                   chunk_text(mine_, dst, piece), step_text(peer, m.step),
                   chunk_text(peer, src, m.piece));
    const auto sent = origins_of(peer, src, m.piece), wanted = origins_of(mine_, dst, piece);
    for (std::size_t c = 0; c < sent.size(); ++c)
      if (mine_.contract.size_class(sent[c]) != mine_.contract.size_class(wanted[c]))
        return error(Code::internal,
                     "{} has room for the bytes of chunk {} of the vector in {} but {} sends those "
                     "of chunk {}",
                     at(step), wanted[c], chunk_text(mine_, dst, piece), step_text(peer, m.step),
                     sent[c]);
    return {};
  }

  // Finds out who reads my publications, and by which of its ticks.
  Status match_sends(const Schedule& peer) {
    const Matching& theirs = matchings_[uindex(peer.rank)];
    const auto sent = my_matching_.sent_to(peer.rank);
    const auto received = theirs.received_from(mine_.rank);
    for (std::size_t m = 0; m < sent.size(); ++m) {
      const Step& step = mine_.steps[sent[m].step];
      if (m == received.size())
        return error(Code::internal, "{} sends {} to rank {}, which never receives it",
                     at(sent[m].step), chunk_text(mine_, step.src, sent[m].piece),
                     index(peer.rank));
      auto& published = plan_.published[sent[m].publication];
      if (published.empty()) published = publication_of(mine_, step, sent[m].piece);
      plan_.readers[sent[m].publication].push_back(
          {static_cast<std::uint16_t>(peer.rank), static_cast<std::uint16_t>(received[m].tick),
           static_cast<std::uint16_t>(theirs.ticks), sent[m].offset, step.src.count});
    }
    return {};
  }

  void emit() {
    for (std::uint32_t i = 0; i < mine_.steps.size();) {
      const Step& step = mine_.steps[i];
      if (step.op == Op::send)
        emit_send(i++);
      else
        i = emit_fused(i);
    }
  }

  // Emits one step of the plan, or one for each reader if the send splits.
  void emit_send(std::uint32_t i) {
    const Step& step = mine_.steps[i];
    const bool split = splits(mine_, step);
    for (std::uint32_t k = 0; k < step.peers.size(); ++k) {
      if (step.peers[k] == mine_.rank) continue;
      PlanStep out = start(step);
      out.flags = PlanStep::publish;
      out.count = step.src.count;
      if (split) out.src += k * step.src.stride, out.src_stride = 0;
      const std::uint32_t pieces = split || step.src.stride == 0 ? 1 : peers_of(step);
      for (std::uint32_t p = 0; p < pieces; ++p) add_own_operand();
      publish(out, lending_.may_lend(i, split ? k : 0, split ? 1 : pieces));
      finish(out, i);
      if (!split) return;
    }
  }

  // A step that stores, together with the steps after it that it can take in. Returns the next
  // step.
  std::uint32_t emit_fused(std::uint32_t i) {
    const std::uint32_t first = i;
    const Step& step = mine_.steps[i++];
    PlanStep out = start(step);
    out.count = step.dst.count;
    out.flags = flags_of(step.op);
    add_operands(step, first);
    const Step* next = fuse_ && i < mine_.steps.size() ? &mine_.steps[i] : nullptr;
    if (next != nullptr && is_sum_of(*next, step, i)) {
      out.flags = flags_of(Op::reduce);
      set_destination(out, next->dst);
      next = ++i < mine_.steps.size() ? &mine_.steps[i] : nullptr;
    }
    if (next != nullptr && is_send_of(*next, out)) {
      out.flags |= PlanStep::publish;
      if (liveness_.dead_after(i, mine_.piece(next->src, 0), next->src.space == Space::scratch))
        out.flags &= static_cast<std::uint8_t>(~PlanStep::store);
      publish(out, lending_.may_lend(i, 0, 1));
      ++i;
    }
    finish(out, first);
    return i;
  }

  static std::uint8_t flags_of(Op op) {
    switch (op) {
      case Op::reduce:
        return PlanStep::combine | PlanStep::accumulate | PlanStep::store;
      case Op::recv_reduce:
        return PlanStep::combine | PlanStep::store;
      default:
        return PlanStep::store;
    }
  }

  // recv(scratch) ; reduce(scratch, dst): the message need not be stored first.
  bool is_sum_of(const Step& next, const Step& recv, std::uint32_t at) const {
    if (recv.op != Op::recv || next.op != Op::reduce || next.src.space != Space::scratch)
      return false;
    if (next.src != recv.dst || next.peers.size() != recv.peers.size()) return false;
    for (std::size_t k = 0; k < recv.peers.size(); ++k)
      if (recv.peers[k] == mine_.rank || !liveness_.dead_after(at, mine_.piece(next.src, k), true))
        return false;
    return true;
  }

  // ... ; send(dst): what was just made is published as it is made.
  bool is_send_of(const Step& next, const PlanStep& out) const {
    if (next.op != Op::send || next.src.stride != 0) return false;
    if ((out.flags & PlanStep::combine) == 0 && out.operands != 1) return false;
    return static_cast<std::uint8_t>(next.src.space) == out.dst_space &&
           next.src.first == out.dst && next.src.count == out.count;
  }

  PlanStep start(const Step& step) {
    PlanStep out;
    operands_ = 0;
    reads_peer_ = false;
    out.first_ref = static_cast<std::uint32_t>(plan_.refs.size());
    out.src_space = static_cast<std::uint8_t>(step.src.space) & 15U;
    out.src = step.src.first;
    out.src_stride = step.src.stride;
    set_destination(out, step.dst);
    out.operands = static_cast<std::uint16_t>(step.peers.size());
    return out;
  }

  static void set_destination(PlanStep& out, const Slice& dst) {
    out.dst_space = static_cast<std::uint8_t>(dst.space) & 15U;
    out.dst = dst.first;
    out.dst_stride = dst.stride;
  }

  void add_operands(const Step& step, std::uint32_t i) {
    const bool receives = step.op == Op::recv || step.op == Op::recv_reduce;
    for (std::size_t k = 0; k < step.peers.size(); ++k) {
      if (!receives || step.peers[k] == mine_.rank) {
        add_own_operand();
        continue;
      }
      plan_.refs.push_back(operand_[i][k].ref);
      plan_.read_from.push_back(std::move(operand_[i][k].publication));
      ++operands_;
      reads_peer_ = true;
    }
  }

  void add_own_operand() {
    plan_.refs.push_back({me(), 0, 0});
    plan_.read_from.emplace_back();
    ++operands_;
  }

  // Numbers the publication of `out`, and marks it lendable if it is. `stays`: its bytes are not
  // overwritten before they have been read. A message that is passed on and not stored is nowhere
  // in own memory.
  void publish(PlanStep& out, bool stays) {
    out.publication = static_cast<std::uint16_t>(published_++);
    const bool stored = (out.flags & PlanStep::store) != 0,
               pure = (out.flags & ~PlanStep::publish) == 0 && !reads_peer_;
    const auto space = Space(pure ? out.src_space : out.dst_space);
    if ((stored || pure) && space != Space::scratch && mine_.contract.has_bytes() && stays)
      out.flags |= PlanStep::lendable;
  }

  // Appends `out` with its number of operands and its tick. `from`: the first step that is in it.
  void finish(PlanStep& out, std::uint32_t from) {
    out.operands = operands_;
    if (reads_peer_) out.tick = ++ticks_;
    plan_.steps.push_back(out);
    plan_.step_of.push_back(number(from));
  }

  static std::uint32_t peers_of(const Step& step) {
    return static_cast<std::uint32_t>(step.peers.size());
  }

  // Cuts off the scratch chunks behind the last one that a step of the plan uses.
  void drop_unused_scratch() {
    std::uint32_t used = 0;
    const auto use = [&](std::uint8_t space, std::uint32_t first, std::uint32_t stride,
                         const PlanStep& s) {
      if (Space(space) != Space::scratch) return;
      used = std::max(used, first + stride * (s.operands - 1U) + s.count);
    };
    for (const PlanStep& s : plan_.steps) {
      const auto refs = plan_.refs.begin() + s.first_ref;
      if (std::any_of(refs, refs + s.operands, [&](const Ref& r) { return r.rank == me(); }))
        use(s.src_space, s.src, s.src_stride, s);
      if ((s.flags & (PlanStep::store | PlanStep::accumulate)) != 0)
        use(s.dst_space, s.dst, s.dst_stride, s);
    }
    plan_.schedule.scratch.resize(std::min<std::size_t>(used, plan_.schedule.scratch.size()));
  }

  std::uint16_t me() const { return static_cast<std::uint16_t>(mine_.rank); }
  // The number of a step of mine_ in what the author wrote.
  std::uint32_t number(std::uint32_t step) const { return number_.empty() ? step : number_[step]; }
  std::string at(std::uint32_t step) const { return step_text(plan_.schedule, number(step)); }

  struct Operand {
    Ref ref;
    std::vector<Origin> publication;
  };
  const std::vector<Matching>& matchings_;
  bool fuse_;
  std::vector<std::uint32_t> number_;  // before mine_, which fills it
  Schedule mine_;
  Matching my_matching_;
  Liveness liveness_;
  Lending lending_;
  Plan plan_;
  std::vector<std::vector<Operand>> operand_;  // [step][entry], of receives
  std::uint16_t operands_ = 0, ticks_ = 0;
  bool reads_peer_ = false;
  std::uint32_t published_ = 0;
};

Result<std::vector<Plan>> lower_each(const std::vector<Schedule>& ranks, bool fuse,
                                     std::uint32_t slots) {
  std::vector<Matching> matchings;
  for (const Schedule& s : ranks) matchings.push_back(matching_of(s));
  ANYCCL_CHECK(check_limits(ranks[0].contract.shape().collective, matchings));
  std::vector<Plan> plans;
  for (const Schedule& s : ranks) {
    Lowering lowering(s, matchings, fuse);
    for (const Schedule& peer : ranks) ANYCCL_CHECK(lowering.match_with(peer));
    ANYCCL_TRY(Plan plan, lowering.finish(slots));
    plans.push_back(std::move(plan));
  }
  return plans;
}

}  // namespace

Result<Plan> lower(const std::function<Schedule(Rank)>& build, int size, Rank me,
                   std::uint32_t slots) {
  const Schedule mine = build(me);
  std::vector<Matching> matchings;
  Lowering lowering(mine, matchings, true);
  for (Rank rank{0}; index(rank) < size; rank = Rank{index(rank) + 1}) {
    const Schedule schedule = build(rank);
    matchings.push_back(matching_of(schedule).with(me));
    ANYCCL_CHECK(lowering.match_with(schedule));
  }
  ANYCCL_CHECK(check_limits(mine.contract.shape().collective, matchings));
  return lowering.finish(slots);
}

Result<Plan> lower(const std::vector<Schedule>& ranks, Rank me, std::uint32_t slots) {
  return lower([&](Rank rank) { return ranks[uindex(rank)]; }, static_cast<int>(ranks.size()), me,
               slots);
}

Result<std::vector<Plan>> lower_all(const std::vector<Schedule>& ranks, std::uint32_t slots) {
  return lower_each(ranks, true, slots);
}

Result<std::vector<Plan>> lower_plainly(const std::vector<Schedule>& ranks) {
  return lower_each(ranks, false, 0);  // no slots: post at each step
}

}  // namespace anyccl
