// The report of the symbolic machine when it stands still.

#include <algorithm>
#include <utility>

#include "algorithm/schedule/print.hpp"
#include "algorithm/verify/engine.hpp"
#include "base/error.hpp"

namespace anyccl::verify {

std::string Engine::where(const Lane& lane) const {
  const Plan& p = plan(lane);
  return step_text(p.schedule, lane.pc < p.steps.size()
                                   ? p.step_of[lane.pc]
                                   : static_cast<std::uint32_t>(p.schedule.steps.size()));
}

// Nothing where there is only one operation, or only one tile.
std::string Engine::when(std::size_t operation, std::uint32_t tile) const {
  std::string text;
  if (operations_[operation].tiles > 1) text += fmt::format(" of tile {}", tile);
  if (operations_.size() > 1) text += fmt::format(" of operation {}", operation + 1);
  return text;
}

// The chunks that the step is about.
std::string Engine::target_text(const Lane& lane, const PlanStep& step) const {
  const bool stores = (step.flags & (PlanStep::store | PlanStep::combine)) != 0;
  return chunk_text(plan(lane).schedule, stores
                                             ? Slice{Space(step.dst_space), step.dst, step.count}
                                             : Slice{Space(step.src_space), step.src, step.count});
}

std::string Engine::position_text(std::size_t rank) const {
  const Member& m = members_[rank];
  if (m.done) return "which has returned";
  for (const Lane& lane : m.lanes)
    if (!lane.done)
      return fmt::format("which is at {}{}", where(lane), when(m.operation, lane.tile));
  return "which waits to return";
}

Engine::Blocker Engine::blocker(Member& m) {
  Blocker first;
  for (Lane& lane : m.lanes) {
    if (lane.done) continue;
    Blocker why = blocker(lane);
    if (why.cause) return why;
    if (first.why.ok()) first = std::move(why);
  }
  if (!first.why.ok()) return first;
  for (const Publication& p : m.publications[m.operation]) {
    Clock known = m.lanes[0].now;
    if (p.lent && !is_released(m, m.operation, p, &known))
      return missing_release(m, m.operation, p, fmt::format("rank {} waits to return", m.rank));
  }
  return {error(Code::internal, "deadlock: rank {} cannot return", m.rank)};
}

Engine::Blocker Engine::blocker(Lane& lane) {
  const Member& m = member(lane);
  Clock known = lane.now;
  const bool at_end = lane.pc == plan(lane).steps.size();
  const PlanStep* step = at_end ? nullptr : &plan(lane).steps[lane.pc];
  const std::string what = fmt::format("{}{}", where(lane), when(m.operation, lane.tile));
  if (!at_end) {
    const Ref* refs = plan(lane).refs.data() + step->first_ref;
    for (std::uint32_t k = 0; k < step->operands; ++k)
      if (refs[k].rank != lane.rank && find_publication(lane, refs[k]) == nullptr)
        return missing_message(lane, refs[k], *step);
    const bool publishes = (step->flags & PlanStep::publish) != 0;
    if (publishes && !is_slot_free(lane, *step, &known)) {
      const std::uint32_t i =
          lane.tile * static_cast<std::uint32_t>(plan(lane).published.size()) + step->publication;
      const Occupant& now = m.slots[slot(m.operation, i)];
      const std::string waits =
          fmt::format("{} on {} waits for slot {} of bank {}", what, target_text(lane, *step),
                      i % setting_.slots, m.operation % setting_.banks);
      if (now.operation < 0 || (now.operation == static_cast<std::int64_t>(m.operation) &&
                                now.number + setting_.slots != i))
        return {error(Code::internal, "deadlock: {}, which an earlier publication must take first",
                      waits)};
      const auto e = static_cast<std::size_t>(now.operation);
      return missing_release(m, e, m.publications[e][now.number], waits);
    }
  }
  for (std::uint32_t i : lane.lent) {
    const Publication& p = m.publications[m.operation][i];
    if (!is_released(m, m.operation, p, &known))
      return missing_release(
          m, m.operation, p,
          at_end ? fmt::format("{} waits to end", what)
                 : fmt::format("{} waits to overwrite {}", what, target_text(lane, *step)));
  }
  return {error(Code::internal, "deadlock: {} waits", what)};
}

Engine::Blocker Engine::missing_message(Lane& lane, const Ref& ref, const PlanStep& step) {
  const std::size_t e = member(lane).operation;
  const std::string what = fmt::format("{}{}", where(lane), when(e, lane.tile));
  const std::uint32_t wanted = number(lane, ref);
  for (const Publication& p : members_[ref.rank].publications[e])
    if (p.made && p.tile == lane.tile && p.index == ref.publication && p.number != wanted)
      return {error(Code::internal,
                    "{} looks for rank {}'s publication {} ({}) as number {} in slot {}, but it is "
                    "number {} in slot {}",
                    what, ref.rank, ref.publication, target_text(lane, step), wanted,
                    wanted % setting_.slots, p.number, p.number % setting_.slots),
              true};
  return {error(Code::internal, "deadlock: {} waits for rank {} to send {}, {}", what, ref.rank,
                target_text(lane, step), position_text(ref.rank))};
}

// Why a publication is not released: its reader has not read it, or does not say so.
Engine::Blocker Engine::missing_release(const Member& m, std::size_t operation,
                                        const Publication& p, const std::string& what) {
  const std::uint32_t round = p.tile / setting_.lanes;
  for (const Reader& r : plan(m.rank, operation).readers[p.index]) {
    const std::uint32_t tick = round * r.ticks + r.tick;
    if (find_post(r.rank, operation, p.tile % setting_.lanes, tick) != nullptr) continue;
    const auto read = std::find_if(p.reads.begin(), p.reads.end(),
                                   [&](const Read& x) { return x.rank == r.rank; });
    const bool silent = read == p.reads.end() || read->left == 0;
    const std::string source =
        fmt::format("what {}{} published", step_text(plan(m.rank, operation).schedule, p.step),
                    when(operation, p.tile));
    if (silent)
      return {error(Code::internal,
                    "deadlock: {} until rank {} posts that it has read {}, which it never does "
                    "(missing post), {}",
                    what, r.rank, source, position_text(r.rank)),
              true};
    return {error(Code::internal, "deadlock: {} until rank {} has read {}, {}", what, r.rank,
                  source, position_text(r.rank))};
  }
  return {error(Code::internal, "deadlock: {}", what)};
}

}  // namespace anyccl::verify
