#include "framework/execution.hpp"

#include <algorithm>
#include <cstring>

namespace anyccl {
namespace {

bool is_send(const PlanStep& step) {  // publishes own memory as it is
  return (step.flags & (PlanStep::combine | PlanStep::store | PlanStep::publish)) ==
         PlanStep::publish;
}
bool streams(const PlanStep& step) {  // each operand can be put into place as it arrives
  return (step.flags & (PlanStep::combine | PlanStep::publish)) == 0;
}

}  // namespace

void Execution::start(const Prepared& prepared, const Call& call, std::uint64_t sequence,
                      std::byte* scratch) {
  prepared_ = &prepared;
  plan_ = &prepared.program->plan;
  call_ = call;
  sequence_ = sequence;
  scratch_ = scratch;
  posted_ = false;
  restart();
  consumes_ = std::any_of(transports_.begin(), transports_.end(),
                          [](const Transport* t) { return t->takes_any_memory(); });
  const CallRecord mine = record();
  for (Transport* t : transports_) t->begin(mine);
  if (lanes_.size() < prepared.lanes) lanes_.resize(prepared.lanes);
  running_ = std::min(prepared.lanes, prepared.geometry.tiles());
  for (std::uint32_t i = 0; i < running_; ++i) {
    lanes_[i].index = i;
    lanes_[i].round = 0;
    enter(lanes_[i], i);
  }
}

void Execution::enter(Lane& lane, std::uint32_t tile) {
  const Geometry& geometry = prepared_->geometry;
  lane.tile = tile;
  lane.pc = lane.arrived = lane.routed = 0;
  lane.computed = lane.finished = false;
  if (geometry.pairs()) {
    bind(*prepared_->program, geometry, tile, lane.own);
    lane.bound = &lane.own;
  } else {
    lane.bound = tile + 1 == geometry.tiles() ? &prepared_->last : &prepared_->full;
  }
  const std::size_t begin = geometry.tile_begin(tile);
  lane.base[0] =
      const_cast<std::byte*>(call_.input) + begin;  // read only: no plan writes its input
  lane.base[1] = call_.output + begin;
  lane.base[2] = scratch_ + lane.index * plan_->schedule.scratch.size() * geometry.scratch_chunk();
}

bool Execution::advance() {
  bool moved = false;
  std::uint32_t finished = 0;
  for (std::uint32_t i = 0; i < running_; ++i) {
    Lane& lane = lanes_[i];
    while (!lane.finished && step(lane)) moved = true;
    finished += lane.finished ? 1U : 0U;
  }
  if (finished < running_) return moved;
  return settle() || moved;
}

bool Execution::settle() {
  if (!posted_) {
    for (Transport* t : transports_) t->finished(sequence_, plan_->everyone);
    posted_ = true;
  }
  for (Transport* t : transports_)
    if (!t->settled()) return false;
  complete({});
  return true;
}

/// Goes to the lane's next tile, unless that would put more tiles in flight than there are lanes:
/// then publications could come to a slot out of order.
bool Execution::next_tile(Lane& lane) {
  const std::uint32_t next = lane.tile + prepared_->lanes;
  lane.finished = next >= prepared_->geometry.tiles();
  if (lane.finished) return true;
  for (std::uint32_t i = 0; i < running_; ++i)
    if (!lanes_[i].finished && lanes_[i].tile < lane.tile) return false;
  ++lane.round;
  enter(lane, next);
  return true;
}

bool Execution::step(Lane& lane) {
  if (lane.pc == plan_->steps.size()) return next_tile(lane);
  const PlanStep& s = plan_->steps[lane.pc];
  const BoundStep& b = lane.bound->steps[lane.pc];
  const bool through =
      is_send(s) ? send(lane, s, b) : receive(lane, s, b) && compute_and_publish(lane, s, b);
  if (through) leave_step(lane, s, b);
  return through;
}

Incoming Execution::incoming(const Lane& lane, const PlanStep& s, const BoundStep& b,
                             std::uint32_t operand) const {
  const Ref& ref = plan_->refs[s.first_ref + operand];
  const Wanted& wanted = lane.bound->wanted[b.first_wanted + operand];
  Incoming in;
  in.operation = sequence_;
  in.number = lane.tile * plan_->publications[ref.rank] + ref.publication;
  in.digest = prepared_->digest;
  in.rank = ref.rank;
  in.offset = wanted.offset;
  in.bytes = wanted.bytes;
  in.whole = wanted.whole;
  in.total = wanted.total;
  in.sized = prepared_->geometry.pairs();
  return in;
}

/// Waits for the operands; where nothing combines them, puts each into place as it comes.
bool Execution::receive(Lane& lane, const PlanStep& s, const BoundStep& b) {
  if (lane.parts.size() < s.operands) lane.parts.resize(s.operands);
  for (; lane.arrived < s.operands; ++lane.arrived) {
    const std::uint32_t k = lane.arrived;
    const Ref& ref = plan_->refs[s.first_ref + k];
    if (ref.rank != me_) {
      Incoming in = incoming(lane, s, b, k);
      if (absent(lane, in.bytes)) continue;
      if (streams(s)) in.into = landing(lane, s, b, k);
      const std::byte* part = route_[ref.rank]->poll(in);
      if (part == nullptr) return false;
      lane.parts[k] = part;
    }
    if (streams(s)) move(lane, s, b, k, {.own = lane.base[s.dst_space]});
  }
  return true;
}

/// Where an operand can arrive directly: its place, if that is one piece.
std::byte* Execution::landing(const Lane& lane, const PlanStep& s, const BoundStep& b,
                              std::uint32_t operand) const {
  const Segment* found = nullptr;
  for (std::uint32_t i = 0; i < b.segments; ++i) {
    const Segment& segment = lane.bound->segments[b.first_segment + i];
    if (segment.operand != operand) continue;
    if (found != nullptr) return nullptr;
    found = &segment;
  }
  return found == nullptr ? nullptr : lane.base[s.dst_space] + found->dst;
}

Outgoing Execution::outgoing(Lane& lane, const PlanStep& s, const BoundStep& b,
                             const Program::Route& route, std::size_t first) {
  Outgoing out;
  out.operation = sequence_;
  out.number = lane.tile * plan_->publications[me_] + s.publication;
  out.lane = lane.index;
  out.digest = prepared_->digest;
  out.bytes = b.out_bytes;
  out.total = b.out_total;
  out.sized = prepared_->geometry.pairs();
  out.readers = {lane.bound->readers.data() + b.first_reader + first, route.readers.size()};
  if (lane.round > 0) {
    lane.readers.assign(out.readers.begin(), out.readers.end());
    for (std::size_t i = 0; i < lane.readers.size(); ++i)
      lane.readers[i].tick += lane.round * route.readers[i].ticks;
    out.readers = lane.readers;
  }
  return out;
}

/// Publishes own memory: lent or sent from where it lies, else copied.
bool Execution::send(Lane& lane, const PlanStep& s, const BoundStep& b) {
  if (absent(lane, b.out_bytes)) return true;
  const std::vector<Program::Route>& routes = prepared_->program->routes[s.publication];
  std::size_t first = 0;
  for (std::uint32_t i = 0; i < routes.size(); first += routes[i++].readers.size()) {
    if (i < lane.routed) continue;
    const Outgoing out = outgoing(lane, s, b, routes[i], first);
    Transport& transport = *routes[i].transport;
    auto offered = Transport::Offered::refused;
    if (b.contiguous) offered = transport.offer(out, direct(lane, b), s.flags & PlanStep::lendable);
    if (offered == Transport::Offered::busy) return false;
    if (offered == Transport::Offered::refused) {
      std::byte* const room = transport.reserve(out);
      if (room == nullptr) return false;
      for (std::uint32_t k = 0; k < s.operands; ++k)
        move(lane, s, b, k, {.outs = 1, .out = {room}});
      transport.publish(out);
    }
    lane.routed = i + 1;
  }
  return true;
}

bool Execution::compute_and_publish(Lane& lane, const PlanStep& s, const BoundStep& b) {
  if (streams(s)) return true;  // receive() did it
  const bool stores = s.flags & PlanStep::store;
  const bool publishes = (s.flags & PlanStep::publish) && !absent(lane, b.out_bytes);
  static const std::vector<Program::Route> kNone;
  const std::vector<Program::Route>& routes =
      publishes ? prepared_->program->routes[s.publication] : kNone;
  // A transport that takes any memory is given the stored result; the others get it as it is
  // computed.
  const auto offers = [&](const Program::Route& r) {
    return stores && b.contiguous && r.transport->takes_any_memory();
  };
  if (!lane.computed) {
    Targets targets{.own = stores ? lane.base[s.dst_space] : nullptr};
    for (std::size_t i = 0, first = 0; i < routes.size(); first += routes[i++].readers.size()) {
      if (offers(routes[i])) continue;
      std::byte* const room = routes[i].transport->reserve(outgoing(lane, s, b, routes[i], first));
      if (room == nullptr) return false;
      targets.out[targets.outs++] = room;
    }
    if (s.flags & PlanStep::combine)
      combine(lane, s, b, targets);
    else
      for (std::uint32_t k = 0; k < s.operands; ++k) move(lane, s, b, k, targets);
    for (std::size_t i = 0, first = 0; i < routes.size(); first += routes[i++].readers.size())
      if (!offers(routes[i])) routes[i].transport->publish(outgoing(lane, s, b, routes[i], first));
    lane.computed = true;
  }
  for (std::size_t i = 0, first = 0; i < routes.size(); first += routes[i++].readers.size()) {
    if (i < lane.routed || !offers(routes[i])) continue;
    if (routes[i].transport->offer(outgoing(lane, s, b, routes[i], first), direct(lane, b),
                                   false) == Transport::Offered::busy)
      return false;
    lane.routed = static_cast<std::uint32_t>(i + 1);
  }
  return true;
}

void Execution::combine(Lane& lane, const PlanStep& s, const BoundStep& b, const Targets& targets) {
  const std::uint32_t extra = s.flags & PlanStep::accumulate ? 1 : 0;
  if (lane.sources.size() < s.operands + extra) lane.sources.resize(s.operands + extra);
  for (std::uint32_t i = 0; i < b.segments; ++i) {
    const Segment& segment = lane.bound->segments[b.first_segment + i];
    const std::size_t* offsets = lane.bound->sources.data() + segment.first_source;
    if (extra != 0) lane.sources[0] = lane.base[s.dst_space] + offsets[0];
    for (std::uint32_t k = 0; k < s.operands; ++k) {
      const bool own = plan_->refs[s.first_ref + k].rank == me_;
      lane.sources[k + extra] = (own ? lane.base[s.src_space] : lane.parts[k]) + offsets[k + extra];
    }
    std::byte* const own = targets.own == nullptr ? nullptr : targets.own + segment.dst;
    std::byte* const out = targets.outs == 0 ? nullptr : targets.out[0] + segment.out;
    std::byte* const primary = own == nullptr ? out : own;
    prepared_->kernel(primary, own == nullptr ? nullptr : out, lane.sources.data(),
                      s.operands + extra, segment.bytes / prepared_->element);
    for (std::uint32_t t = 1; t < targets.outs; ++t)
      std::memcpy(targets.out[t] + segment.out, primary, segment.bytes);
  }
}

void Execution::move(Lane& lane, const PlanStep& s, const BoundStep& b, std::uint32_t operand,
                     const Targets& targets) {
  const bool own = plan_->refs[s.first_ref + operand].rank == me_;
  for (std::uint32_t i = 0; i < b.segments; ++i) {
    const Segment& segment = lane.bound->segments[b.first_segment + i];
    if (segment.operand != operand) continue;
    const std::byte* from = (own ? lane.base[s.src_space] : lane.parts[operand]) +
                            lane.bound->sources[segment.first_source];
    if (targets.own != nullptr && targets.own + segment.dst != from)
      std::memcpy(targets.own + segment.dst, from, segment.bytes);
    for (std::uint32_t t = 0; t < targets.outs; ++t)
      std::memcpy(targets.out[t] + segment.out, from, segment.bytes);
  }
}

void Execution::leave_step(Lane& lane, const PlanStep& s, const BoundStep& b) {
  for (std::uint32_t k = 0; consumes_ && k < s.operands; ++k) {
    const Ref& ref = plan_->refs[s.first_ref + k];
    if (ref.rank == me_) continue;
    const Incoming in = incoming(lane, s, b, k);
    if (!absent(lane, in.bytes)) route_[ref.rank]->consumed(in);
  }
  ++lane.pc;
  if (s.tick != 0 && prepared_->posts_each) {
    const std::uint32_t tick = lane.round * plan_->ticks + s.tick;
    for (Transport* t : transports_) t->post(sequence_, lane.index, tick);
  }
  lane.arrived = lane.routed = 0;
  lane.computed = false;
}

void Execution::awaited(std::vector<Rank>& ranks) const {
  for (std::uint32_t i = 0; i < running_; ++i) {
    const Lane& lane = lanes_[i];
    if (lane.finished || lane.pc == plan_->steps.size()) continue;
    const PlanStep& s = plan_->steps[lane.pc];
    for (std::uint32_t k = lane.arrived; k < s.operands && !is_send(s); ++k)
      if (const Ref& ref = plan_->refs[s.first_ref + k]; ref.rank != me_)
        ranks.push_back(Rank{ref.rank});
    if (s.flags & PlanStep::publish && (is_send(s) || lane.arrived == s.operands))
      for (const Reader& r : plan_->readers[s.publication]) ranks.push_back(Rank{r.rank});
  }
  if (posted_)  // all that is left: peers that read what was lent, or that a full socket leads to
    for (const std::vector<Reader>& readers : plan_->readers)
      for (const Reader& r : readers) ranks.push_back(Rank{r.rank});
}

}  // namespace anyccl
