#include "framework/collective/execution.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/hash.hpp"
#include "platform/reduce/copy.hpp"

namespace anyccl {
namespace {

/// A rank that has no such buffer never looks there.
std::byte* behind(std::byte* buffer, std::size_t bytes) {
  return buffer == nullptr ? nullptr : buffer + bytes;
}

bool is_send(const PlanStep& step) {  // publishes own memory as it is
  return (step.flags & (PlanStep::combine | PlanStep::store | PlanStep::publish)) ==
         PlanStep::publish;
}
bool streams(const PlanStep& step) {  // each operand can be put into place as it arrives
  return (step.flags & (PlanStep::combine | PlanStep::publish)) == 0;
}

}  // namespace

void Execution::start(const PreparedCall& prepared, const Call& call, Position position,
                      std::byte* scratch) {
  prepared_ = &prepared;
  set_kind(prepared.digest);
  plan_ = &prepared.routed->plan;
  result_ = call.output;
  position_ = position;
  scratch_ = scratch;
  input_ = prepared.input.is_empty()
               ? call.input
               : prepared.input.run(call, prepared.op.get(), scratch_, leaves_);
  output_ = prepared.result.written(result_, scratch_);
  announced_ = posted_ = false;
  around_ = nullptr;
  restart();
  if (lanes_.size() < prepared.lanes) lanes_.resize(prepared.lanes);
  for (Lane& lane : lanes_)
    if (lane.operands.size() < prepared.routed->most_operands) make_room(lane);
  running_ = std::min(prepared.lanes, prepared.geometry.tiles());
  for (std::uint32_t i = 0; i < running_; ++i) {
    lanes_[i].index = i;
    lanes_[i].round = 0;
    enter(lanes_[i], i);
  }
  if (prepared.only_gives) announce_first();
}

void Execution::make_room(Lane& lane) const {
  lane.operands.resize(prepared_->routed->most_operands);
  lane.sources.resize(prepared_->routed->most_operands + 1);
  lane.portions.resize(prepared_->routed->most_operands + 1);
}

void Execution::enter(Lane& lane, std::uint32_t tile) {
  const Geometry& geometry = prepared_->geometry;
  lane.tile = tile;
  lane.pc = lane.arrived = lane.routes_done = 0;
  lane.computed = lane.finished = false;
  if (geometry.varies()) {
    bind(*prepared_->routed, geometry, prepared_->labels(), tile, lane.own);
    lane.bound = &lane.own;
  } else {
    lane.bound = tile + 1 == geometry.tiles() ? &prepared_->last : &prepared_->full;
  }
  const std::size_t begin = geometry.tile_begin(tile);
  lane.base[0] = behind(const_cast<std::byte*>(input_), begin);  // no plan writes its input
  lane.base[1] = behind(output_, begin * prepared_->portions.stored_growth());
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
  if (!announced_) announce();
  if (finished < running_) return moved;
  return settle() || moved;
}

bool Execution::advance_patiently() {
  constexpr std::uint16_t kPollBudget = 32;
  if (running_ == 1) poll_budget_ = kPollBudget;  // else another lane may go on
  const bool moved = advance();
  poll_budget_ = 1;
  return moved;
}

/// After the first publications, whose way to the peers takes longer than this.
void Execution::announce() {
  announced_ = true;
  const CallRecord mine = record();
  for (Publications* p : all_) p->announce(mine);
}

/// Where this rank may be through with the call before anybody looks.
void Execution::announce_first() {
  announced_ = true;
  const CallRecord mine = record();
  for (Publications* p : all_) p->announce_first(mine);
}

bool Execution::settle() {
  bool settled = true;
  for (Publications* p : all_)
    settled =
        (posted_ ? p->settled() : p->finished(position_.sequence, plan_->everyone)) && settled;
  posted_ = true;
  if (!settled) return false;
  if (!prepared_->result.is_empty())
    prepared_->result.run(result_, output_, prepared_->bytes.output / prepared_->element);
  if (around_ != nullptr) {
    problem_ = around_->after();
    if (!problem_.ok()) return true;
  }
  complete({});
  return true;
}

/// Goes to the lane's next tile, unless that would put more tiles in flight than there are lanes:
/// then publications could come to a slot out of order.
bool Execution::next_tile(Lane& lane) {
  if (!has_next(lane)) return lane.finished = true;  // of a plan without steps
  for (std::uint32_t i = 0; i < running_; ++i)
    if (!lanes_[i].finished && lanes_[i].tile < lane.tile) return false;
  ++lane.round;
  enter(lane, lane.tile + prepared_->lanes);
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

Incoming Execution::incoming(const Lane& lane, const BoundStep& b, std::uint32_t operand) const {
  Incoming in = lane.bound->wanted[b.first_wanted + operand];
  in.operation = position_.sequence;
  in.digest += static_cast<std::uint32_t>(position_.history);
  if (lane.tile > 0) in.number += lane.tile * plan_->publications[in.rank];
  return in;
}

/// Waits for the operands; where nothing combines them, puts each into place as it comes.
bool Execution::receive(Lane& lane, const PlanStep& s, const BoundStep& b) {
  const bool streaming = streams(s);
  for (; lane.arrived < s.operands; ++lane.arrived) {
    const std::uint32_t k = lane.arrived;
    Incoming in = incoming(lane, b, k);
    if (in.rank == me_) {
      lane.operands[k] = lane.base[s.src_space];
    } else {
      if (absent(lane, in.bytes)) continue;
      in.into = destination_for(lane, s, b, k);
      in.poll_budget = poll_budget_;
      lane.operands[k] = route_[in.rank]->poll(in);
      if (lane.operands[k] == nullptr) return false;
    }
    if (streaming) move(lane, b, k, {.own = lane.base[s.dst_space]});
  }
  return true;
}

/// Where an operand can arrive directly: its place, if that is contiguous.
std::byte* Execution::landing(const Lane& lane, const PlanStep& s, const BoundStep& b,
                              std::uint32_t operand) const {
  const Extent* found = nullptr;
  for (std::uint32_t i = 0; i < b.extents; ++i) {
    const Extent& extent = lane.bound->extents[b.first_extent + i];
    if (extent.operand != operand) continue;
    if (found != nullptr) return nullptr;
    found = &extent;
  }
  return found == nullptr ? nullptr : lane.base[s.dst_space] + found->dst;
}

/// Where an operand may be put by the transport: at its place, or where it waits to be used.
std::byte* Execution::destination_for(const Lane& lane, const PlanStep& s, const BoundStep& b,
                                      std::uint32_t operand) const {
  if (std::byte* const place = streams(s) ? landing(lane, s, b, operand) : nullptr) return place;
  if (prepared_->landing.bytes == 0) return nullptr;
  const std::size_t place = lane.index * prepared_->routed->most_operands + operand;
  return scratch_ + prepared_->landing.at + place * prepared_->landing.bytes;
}

Outgoing Execution::outgoing(Lane& lane, const PlanStep& s, const BoundStep& b, std::size_t route) {
  Outgoing out = lane.bound->outs[b.first_out + route];
  out.operation = position_.sequence;
  out.digest += static_cast<std::uint32_t>(position_.history);
  out.lane = lane.index;
  if (lane.tile > 0) out.number += lane.tile * plan_->publications[me_];
  if (lane.round > 0) {
    const std::vector<Reader>& readers = prepared_->routed->routes[s.publication][route].readers;
    lane.readers.assign(out.readers.begin(), out.readers.end());
    for (std::size_t i = 0; i < readers.size(); ++i)
      lane.readers[i].tick += lane.round * readers[i].ticks;
    out.readers = lane.readers;
  }
  return out;
}

/// Publishes own memory: lent or sent from where it lies, else copied.
bool Execution::send(Lane& lane, const PlanStep& s, const BoundStep& b) {
  if (absent(lane, b.out_bytes)) return true;
  const std::vector<RoutedPlan::Route>& routes = prepared_->routed->routes[s.publication];
  for (std::uint32_t i = lane.routes_done; i < routes.size(); ++i) {
    const Outgoing out = outgoing(lane, s, b, i);
    Publications& publications = *routes[i].publications;
    auto offered = Publications::Offered::refused;
    if (b.contiguous)
      offered = publications.offer(out, direct(lane, b), s.flags & PlanStep::lendable);
    if (offered == Publications::Offered::busy) return false;
    if (offered == Publications::Offered::refused) {
      std::byte* const room = publications.reserve(out);
      if (room == nullptr) return false;
      for (std::uint32_t k = 0; k < s.operands; ++k) {
        lane.operands[k] = lane.base[s.src_space];
        move(lane, b, k, {.outs = 1, .out = {room}});
      }
      publications.publish(out);
    }
    lane.routes_done = i + 1;
  }
  return true;
}

bool Execution::compute_and_publish(Lane& lane, const PlanStep& s, const BoundStep& b) {
  if (streams(s)) return true;  // receive() did it
  const bool stores = s.flags & PlanStep::store;
  const bool publishes = (s.flags & PlanStep::publish) && !absent(lane, b.out_bytes);
  Targets targets;
  if (stores) targets.own = lane.base[s.dst_space];
  if (publishes) return compute_for_peers(lane, s, b, targets);
  compute(lane, s, b, targets);
  return true;
}

void Execution::compute(Lane& lane, const PlanStep& s, const BoundStep& b, const Targets& targets) {
  if (s.flags & PlanStep::combine) return combine(lane, s, b, targets);
  for (std::uint32_t k = 0; k < s.operands; ++k) move(lane, b, k, targets);
}

/// A transport that takes this memory is given the stored result; the others get it as it is
/// computed.
bool Execution::compute_for_peers(Lane& lane, const PlanStep& s, const BoundStep& b,
                                  Targets targets) {
  const std::vector<RoutedPlan::Route>& routes = prepared_->routed->routes[s.publication];
  const bool lendable = s.flags & PlanStep::lendable;
  const auto handed = [&](std::size_t i) { return (lane.handed >> i & 1U) != 0; };
  if (!lane.computed) {
    lane.handed = 0;
    for (std::size_t i = 0; i < routes.size(); ++i) {
      if (targets.own != nullptr && b.contiguous &&
          routes[i].publications->would_take(b.out_bytes, direct(lane, b), lendable)) {
        lane.handed |= 1U << i;
        continue;
      }
      std::byte* const room = routes[i].publications->reserve(outgoing(lane, s, b, i));
      if (room == nullptr) return false;
      targets.out[targets.outs++] = room;
    }
    compute(lane, s, b, targets);
    for (std::size_t i = 0; i < routes.size(); ++i)
      if (!handed(i)) routes[i].publications->publish(outgoing(lane, s, b, i));
    lane.computed = true;
  }
  for (std::uint32_t i = lane.routes_done; i < routes.size(); ++i) {
    if (handed(i) &&
        !hand_over(*routes[i].publications, outgoing(lane, s, b, i), direct(lane, b), lendable))
      return false;
    lane.routes_done = i + 1;
  }
  return true;
}

/// Publishes what lies at `from`; false while there is no room.
bool Execution::hand_over(Publications& publications, const Outgoing& out, const std::byte* from,
                          bool lendable) {
  const Publications::Offered offered = publications.offer(out, from, lendable);
  if (offered != Publications::Offered::refused) return offered != Publications::Offered::busy;
  std::byte* const room = publications.reserve(out);
  if (room == nullptr) return false;
  copy_bytes(room, from, out.bytes);
  publications.publish(out);
  return true;
}

void Execution::combine(Lane& lane, const PlanStep& s, const BoundStep& b, const Targets& targets) {
  const std::uint32_t extra = s.flags & PlanStep::accumulate ? 1 : 0;
  const std::uint32_t sources = s.operands + extra;
  for (std::uint32_t i = 0; i < b.extents; ++i) {
    const Extent& extent = lane.bound->extents[b.first_extent + i];
    const std::size_t* offsets = lane.bound->sources.data() + extent.first_source;
    const void** source = lane.sources.data();
    if (extra != 0) *source++ = lane.base[s.dst_space] + *offsets++;
    for (std::uint32_t k = 0; k < s.operands; ++k) source[k] = lane.operands[k] + offsets[k];
    const Portions& portions = prepared_->portions;
    std::byte* const own =
        targets.own == nullptr ? nullptr : targets.own + extent.dst * portions.stored_growth();
    std::byte* const out = targets.outs == 0 ? nullptr : targets.out[0] + extent.out;
    std::byte* const primary = own == nullptr ? out : own;
    std::uint32_t written = 1;
    if (portions.kernel == nullptr) {
      combine_operands(lane.sources.data(), sources, extent.bytes, primary,
                       own == nullptr ? nullptr : out);
    } else {
      portions.run(primary, lane.sources.data(), sources, extent.bytes / prepared_->element,
                   scratch_ + portions.at, lane.portions.data());
      if (own != nullptr) written = 0;
    }
    for (std::uint32_t t = written; t < targets.outs; ++t)
      copy_bytes(targets.out[t] + extent.out, primary, extent.bytes);
  }
}

void Execution::combine_operands(const void* const* sources, std::uint32_t count, std::size_t bytes,
                                 std::byte* dst, std::byte* second) const {
  const std::size_t elements = bytes / prepared_->element;
  if (prepared_->kernel != nullptr) return prepared_->kernel(dst, second, sources, count, elements);
  apply(*prepared_->op, static_cast<DType>(prepared_->record.dtype), prepared_->element, dst,
        second, sources, count, elements);
}

void Execution::move(Lane& lane, const BoundStep& b, std::uint32_t operand,
                     const Targets& targets) {
  for (std::uint32_t i = 0; i < b.extents; ++i) {
    const Extent& extent = lane.bound->extents[b.first_extent + i];
    if (extent.operand != operand) continue;
    const std::byte* from = lane.operands[operand] + lane.bound->sources[extent.first_source];
    if (targets.own != nullptr && targets.own + extent.dst != from)
      copy_bytes(targets.own + extent.dst, from, extent.bytes);
    for (std::uint32_t t = 0; t < targets.outs; ++t)
      copy_bytes(targets.out[t] + extent.out, from, extent.bytes);
  }
}

void Execution::consume(const Lane& lane, const PlanStep& s, const BoundStep& b) {
  for (std::uint32_t k = 0; k < s.operands; ++k) {
    const Incoming in = incoming(lane, b, k);
    if (in.rank != me_ && !absent(lane, in.bytes)) route_[in.rank]->consumed(in);
  }
}

void Execution::post(const Lane& lane, const PlanStep& s) {
  const std::uint32_t tick = lane.round * plan_->ticks + s.tick;
  for (Publications* p : all_) p->post(position_.sequence, lane.index, tick);
}

void Execution::leave_step(Lane& lane, const PlanStep& s, const BoundStep& b) {
  if (prepared_->consumes) consume(lane, s, b);
  ++lane.pc;
  lane.finished = lane.pc == plan_->steps.size() && !has_next(lane);
  if (prepared_->posts_each && s.tick != 0) post(lane, s);
  lane.arrived = lane.routes_done = 0;
  lane.computed = false;
}

/// Operands after the one that is waited for now may be there already.
bool Execution::is_missing(const Lane& lane, const PlanStep& s, std::uint32_t k) const {
  const BoundStep& b = lane.bound->steps[lane.pc];
  Incoming in = incoming(lane, b, k);
  if (in.rank == me_ || absent(lane, in.bytes)) return false;
  in.into = destination_for(lane, s, b, k);
  return route_[in.rank]->poll(in) == nullptr;
}

std::uint64_t Execution::progress() const {
  std::uint64_t sum = posted_ ? 1 : 0;
  for (std::uint32_t i = 0; i < running_; ++i) {
    const Lane& lane = lanes_[i];
    sum = mix(sum, std::uint64_t{lane.tile} << 32 | lane.pc);
    sum = mix(sum, std::uint64_t{lane.arrived} << 32 | lane.routes_done);
  }
  return sum;
}

std::string Execution::place() const {
  const std::string algorithm(id(*prepared_->routed->algorithm));
  const Lane* open = nullptr;
  for (std::uint32_t i = 0; i < running_; ++i)
    if (!lanes_[i].finished && (open == nullptr || lanes_[i].tile < open->tile)) open = &lanes_[i];
  if (open == nullptr || plan_->steps.empty()) return "at the end of " + algorithm;
  const auto steps = plan_->steps.size();
  std::string text = fmt::format("step {} of {} of {}", std::min<std::size_t>(open->pc + 1, steps),
                                 steps, algorithm);
  const std::uint32_t tiles = prepared_->geometry.tiles();
  return tiles > 1 ? fmt::format("{}, tile {} of {}", text, open->tile + 1, tiles) : text;
}

void Execution::awaited(std::vector<Rank>& ranks) const {
  for (std::uint32_t i = 0; i < running_; ++i) {
    const Lane& lane = lanes_[i];
    if (lane.finished || lane.pc == plan_->steps.size()) continue;
    const PlanStep& s = plan_->steps[lane.pc];
    for (std::uint32_t k = lane.arrived; k < s.operands && !is_send(s); ++k)
      if (const Ref& ref = plan_->refs[s.first_ref + k]; is_missing(lane, s, k))
        ranks.push_back(Rank{ref.rank});
    if (s.flags & PlanStep::publish && (is_send(s) || lane.arrived == s.operands))
      for (const Reader& r : plan_->readers[s.publication]) ranks.push_back(Rank{r.rank});
  }
  if (posted_)  // all that is left: peers that read what was lent, or that a full socket leads to
    for (const std::vector<Reader>& readers : plan_->readers)
      for (const Reader& r : readers)
        if (route_[r.rank]->is_behind(Rank{r.rank})) ranks.push_back(Rank{r.rank});
}

}  // namespace anyccl
