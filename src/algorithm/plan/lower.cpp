#include <algorithm>
#include <limits>
#include <utility>

#include "algorithm/plan/simulate.hpp"
#include "algorithm/schedule/print.hpp"
#include "base/error.hpp"

namespace anyccl {
namespace {

// One entry of a send: what a peer may read.
struct Message {
  std::uint32_t step, piece, publication, offset;
};
// One entry of a receive.
struct Receipt {
  std::uint32_t step, piece, tick;
};

// A personalised send of a v-form makes one publication per reader, so that none carries bytes
// whose number its reader does not know.
bool splits(const Schedule& s, const Step& send) {
  return s.contract.pair_sizes() && send.src.stride > 0;
}

// What one rank sends to one other rank and receives from it, in step order.
struct Link {
  std::vector<Message> sent;
  std::vector<Receipt> received;
};
struct Wires {
  std::vector<Link> to;  // by rank
  std::uint32_t publications = 0, ticks = 0;
};

Wires wires_of(const Schedule& s, std::size_t ranks) {
  Wires wires{.to = std::vector<Link>(ranks)};
  for (std::uint32_t i = 0; i < s.steps.size(); ++i) {
    const Step& step = s.steps[i];
    const bool send = step.op == Op::send;
    if (!send && step.op != Op::recv && step.op != Op::recv_reduce) continue;
    const bool split = send && splits(s, step);
    std::uint32_t remote = 0;
    for (std::uint32_t k = 0; k < step.peers.size(); ++k) {
      if (step.peers[k] == s.rank) continue;
      const std::uint32_t publication = wires.publications + (split ? remote : 0);
      const std::uint32_t offset = split || step.src.stride == 0 ? 0 : k * step.src.count;
      Link& link = wires.to[uindex(step.peers[k])];
      if (send)
        link.sent.push_back({i, k, publication, offset});
      else
        link.received.push_back({i, k, wires.ticks + 1});
      ++remote;
    }
    if (remote == 0) continue;
    if (send)
      wires.publications += split ? remote : 1;
    else
      ++wires.ticks;
  }
  return wires;
}

std::vector<Wires> wires_of(const std::vector<Schedule>& ranks) {
  std::vector<Wires> wires;
  for (const Schedule& s : ranks) wires.push_back(wires_of(s, ranks.size()));
  return wires;
}

std::vector<Origin> origins(const Schedule& s, const Slice& slice, std::size_t first,
                            std::size_t pieces) {
  std::vector<Origin> result;
  for (std::size_t k = first; k < first + pieces; ++k)
    for (std::uint32_t c = 0; c < slice.count; ++c)
      result.push_back(
          s.origin(slice.space, slice.first + static_cast<std::uint32_t>(k) * slice.stride + c));
  return result;
}

// The origins of the whole publication that piece k of a send is in.
std::vector<Origin> publication_of(const Schedule& s, const Step& send, std::size_t k) {
  if (send.src.stride == 0) return origins(s, send.src, 0, 1);
  return splits(s, send) ? origins(s, send.src, k, 1) : origins(s, send.src, 0, send.peers.size());
}

// When the cells of one schedule are used, for questions about a cell's future.
class Uses {
 public:
  explicit Uses(const Schedule& s) : uses_(s.cells()) {
    for (std::uint32_t i = 0; i < s.steps.size(); ++i) {
      const Schedule::Access access = s.access(s.steps[i]);
      for (std::uint32_t c : access.reads) uses_[c].push_back({i, false});
      for (std::uint32_t c : access.writes) uses_[c].push_back({i, true});
    }
  }
  // Nobody reads the cells after `step`: they are overwritten first, or are scratch.
  bool dead_after(std::uint32_t step, const std::vector<std::uint32_t>& cells, bool scratch) const {
    return std::all_of(cells.begin(), cells.end(), [&](std::uint32_t c) {
      const auto next = after(step, c);
      return next == uses_[c].end() ? scratch : next->write;
    });
  }
  bool written_after(std::uint32_t step, const std::vector<std::uint32_t>& cells) const {
    return std::any_of(cells.begin(), cells.end(), [&](std::uint32_t c) {
      return std::any_of(after(step, c), uses_[c].end(), [](const Use& u) { return u.write; });
    });
  }

 private:
  struct Use {
    std::uint32_t step;
    bool write;  // a step that reads and writes a cell has its read first
  };
  std::vector<Use>::const_iterator after(std::uint32_t step, std::uint32_t cell) const {
    return std::partition_point(uses_[cell].begin(), uses_[cell].end(),
                                [step](const Use& u) { return u.step <= step; });
  }
  std::vector<std::vector<Use>> uses_;
};

class Lowering {
 public:
  Lowering(const std::vector<Schedule>& ranks, const std::vector<Wires>& wires, Rank me, bool fuse)
      : ranks_(ranks),
        wires_(wires),
        mine_(ranks[uindex(me)]),
        fuse_(fuse),
        uses_(mine_),
        plan_{.schedule = mine_} {}

  Result<Plan> run(std::uint32_t slots) {
    std::uint32_t most = 0, ticks = 0;
    for (const Wires& w : wires_) {
      plan_.publications.push_back(w.publications);
      most = std::max(most, w.publications);
      ticks = std::max(ticks, w.ticks);
    }
    ANYCCL_CHECK(check_limits(most, ticks));
    plan_.ticks = static_cast<std::uint16_t>(wires().ticks);
    ANYCCL_CHECK(match_receives());
    ANYCCL_CHECK(match_sends());
    emit();
    const Contract& contract = mine_.contract;
    plan_.everyone = contract.everyone();
    // Whether a peer may lend depends on its memory, which is not known here. So anyone who
    // publishes bytes is taken to lend: the answer must be the same on all ranks.
    plan_.posts_each = most > slots || (most > 0 && contract.has_bytes());
    return std::move(plan_);
  }

 private:
  Status check_limits(std::uint32_t publications, std::uint32_t ticks) const {
    constexpr std::size_t most = std::numeric_limits<std::uint16_t>::max();
    std::size_t widest = 0;
    for (const Step& s : mine_.steps) widest = std::max(widest, s.peers.size());
    if (ranks_.size() <= most && publications <= most && ticks <= most && widest <= most) return {};
    return error(
        Code::unsupported,
        "{} over {} ranks: a plan has at most {} ranks, publications, operands and reading "
        "steps per rank, this one has {}, {} and {}; use another algorithm",
        name(mine_.contract.shape().collective), ranks_.size(), most, publications, widest, ticks);
  }

  // Pairs each entry of my receives with what the peer sends: messages match in step order.
  Status match_receives() {
    operand_.resize(mine_.steps.size());
    for (std::size_t q = 0; q < ranks_.size(); ++q) {
      const Schedule& peer = ranks_[q];
      const auto& sent = wires_[q].to[uindex(mine_.rank)].sent;
      const auto& received = wires().to[q].received;
      for (std::size_t m = 0; m < received.size(); ++m) {
        const Receipt& r = received[m];
        const Slice& dst = mine_.steps[r.step].dst;
        const std::size_t piece = mine_.steps[r.step].op == Op::recv ? r.piece : 0;
        if (m == sent.size())
          return error(Code::internal, "{} receives {} from rank {}, which sends it nothing more",
                       step_text(mine_, r.step), chunk_text(mine_, dst, piece), q);
        ANYCCL_CHECK(compare(r, dst, piece, peer, sent[m]));
        auto& operands = operand_[r.step];
        operands.resize(mine_.steps[r.step].peers.size());
        operands[r.piece] = {{static_cast<std::uint16_t>(q),
                              static_cast<std::uint16_t>(sent[m].publication), sent[m].offset},
                             publication_of(peer, peer.steps[sent[m].step], sent[m].piece)};
      }
      if (sent.size() > received.size()) {
        const Message& lost = sent[received.size()];
        return error(Code::internal, "{} sends {} to rank {}, which never receives it",
                     step_text(peer, lost.step),
                     chunk_text(peer, peer.steps[lost.step].src, lost.piece), index(mine_.rank));
      }
    }
    return {};
  }

  Status compare(const Receipt& r, const Slice& dst, std::size_t piece, const Schedule& peer,
                 const Message& m) const {
    const Slice& src = peer.steps[m.step].src;
    if (src.count != dst.count)
      return error(Code::internal, "{} receives {} but {} sends {}", step_text(mine_, r.step),
                   chunk_text(mine_, dst, piece), step_text(peer, m.step),
                   chunk_text(peer, src, m.piece));
    const auto sent = origins(peer, src, m.piece, 1), wanted = origins(mine_, dst, piece, 1);
    for (std::size_t c = 0; c < sent.size(); ++c)
      if (mine_.contract.size_class(sent[c]) != mine_.contract.size_class(wanted[c]))
        return error(Code::internal,
                     "{} has room for the bytes of chunk {} of the vector in {} but {} sends those "
                     "of chunk {}",
                     step_text(mine_, r.step), wanted[c], chunk_text(mine_, dst, piece),
                     step_text(peer, m.step), sent[c]);
    return {};
  }

  // Finds out who reads my publications, and by which of its ticks.
  Status match_sends() {
    plan_.published.resize(plan_.publications[uindex(mine_.rank)]);
    plan_.readers.resize(plan_.published.size());
    for (std::size_t q = 0; q < ranks_.size(); ++q) {
      const auto& sent = wires().to[q].sent;
      const auto& received = wires_[q].to[uindex(mine_.rank)].received;
      for (std::size_t m = 0; m < sent.size(); ++m) {
        const auto& [at, piece, publication, offset] = sent[m];
        const Step& step = mine_.steps[at];
        if (m == received.size())
          return error(Code::internal, "{} sends {} to rank {}, which never receives it",
                       step_text(mine_, at), chunk_text(mine_, step.src, piece), q);
        if (plan_.published[publication].empty())
          plan_.published[publication] = publication_of(mine_, step, piece);
        plan_.readers[publication].push_back(
            {static_cast<std::uint16_t>(q), static_cast<std::uint16_t>(received[m].tick),
             static_cast<std::uint16_t>(wires_[q].ticks), offset, step.src.count});
      }
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
      for (std::uint32_t p = 0; p < pieces; ++p) own_operand();
      publish(out, i, lent_by(step, split ? k : 0, split ? 1 : pieces));
      finish(out, i);
      if (!split) return;
    }
  }

  // The cells that peers would read if the pieces were lent; nobody reads the rank's own piece.
  std::vector<std::uint32_t> lent_by(const Step& send, std::uint32_t first,
                                     std::uint32_t pieces) const {
    std::vector<std::uint32_t> cells;
    for (std::uint32_t k = first; k < first + pieces; ++k) {
      if (send.src.stride > 0 && send.peers[k] == mine_.rank) continue;
      const auto piece = mine_.piece(send.src, k);
      cells.insert(cells.end(), piece.begin(), piece.end());
    }
    return cells;
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
      const auto cells = mine_.piece(next->src, 0);
      if (uses_.dead_after(i, cells, next->src.space == Space::scratch))
        out.flags &= static_cast<std::uint8_t>(~PlanStep::store);
      publish(out, i++, cells);
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
      if (recv.peers[k] == mine_.rank || !uses_.dead_after(at, mine_.piece(next.src, k), true))
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
        own_operand();
        continue;
      }
      plan_.refs.push_back(operand_[i][k].ref);
      plan_.read_from.push_back(std::move(operand_[i][k].publication));
      ++operands_;
      reads_peer_ = true;
    }
  }

  void own_operand() {
    plan_.refs.push_back({static_cast<std::uint16_t>(mine_.rank), 0, 0});
    plan_.read_from.emplace_back();
    ++operands_;
  }

  // `lent`: the memory that holds what is published, if nothing is staged.
  void publish(PlanStep& out, std::uint32_t at, const std::vector<std::uint32_t>& lent) {
    out.publication = static_cast<std::uint16_t>(published_++);
    const bool stored = (out.flags & PlanStep::store) != 0,
               pure = (out.flags & ~PlanStep::publish) == 0;
    const auto space = Space(pure ? out.src_space : out.dst_space);
    if ((stored || pure) && space != Space::scratch && mine_.contract.has_bytes() &&
        !uses_.written_after(at, lent))
      out.flags |= PlanStep::lendable;
  }

  void finish(PlanStep& out, std::uint32_t from) {
    out.operands = operands_;
    if (reads_peer_) out.tick = ++ticks_;
    plan_.steps.push_back(out);
    plan_.step_of.push_back(from);
  }

  static std::uint32_t peers_of(const Step& step) {
    return static_cast<std::uint32_t>(step.peers.size());
  }

  const Wires& wires() const { return wires_[uindex(mine_.rank)]; }

  struct Operand {
    Ref ref;
    std::vector<Origin> publication;
  };
  const std::vector<Schedule>& ranks_;
  const std::vector<Wires>& wires_;
  const Schedule& mine_;
  bool fuse_;
  Uses uses_;
  Plan plan_;
  std::vector<std::vector<Operand>> operand_;  // [step][entry], of receives
  std::uint16_t operands_ = 0, ticks_ = 0;
  bool reads_peer_ = false;
  std::uint32_t published_ = 0;
};

// One plan step per step, or fused; for every rank.
Result<std::vector<Plan>> lower_each(const std::vector<Schedule>& ranks, bool fuse,
                                     std::uint32_t slots) {
  const std::vector<Wires> wires = wires_of(ranks);
  std::vector<Plan> plans;
  for (const Schedule& s : ranks) {
    ANYCCL_TRY(Plan plan, Lowering(ranks, wires, s.rank, fuse).run(slots));
    plans.push_back(std::move(plan));
  }
  return plans;
}

}  // namespace

Result<Plan> lower(const std::vector<Schedule>& ranks, Rank me, std::uint32_t slots) {
  return Lowering(ranks, wires_of(ranks), me, true).run(slots);
}

Result<std::vector<Plan>> lower_all(const std::vector<Schedule>& ranks, std::uint32_t slots) {
  return lower_each(ranks, true, slots);
}

Result<std::vector<Plan>> lower_plainly(const std::vector<Schedule>& ranks) {
  return lower_each(ranks, false, 0);  // no slots: post at each step
}

}  // namespace anyccl
