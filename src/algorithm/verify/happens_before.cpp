// The facts that ranks of the symbolic machine know of each other, and the events that tell them.

#include <algorithm>

#include "algorithm/verify/engine.hpp"

namespace anyccl::verify {
namespace {

constexpr std::uint32_t kNobody = ~0U;  // a cell that no peer reads

}  // namespace

std::size_t Engine::slot(std::size_t operation, std::uint32_t number) const {
  return operation % setting_.banks * setting_.slots + number % setting_.slots;
}

std::uint32_t Engine::number(const Lane& lane, const Ref& ref) const {
  return lane.tile * plan(lane).publications[ref.rank] + ref.publication;
}

// The publication an operand wants, where the reader looks for it; null while it is not there.
Engine::Publication* Engine::find_publication(const Lane& lane, const Ref& ref) {
  const std::size_t e = member(lane).operation;
  Member& from = members_[ref.rank];
  const std::uint32_t i = number(lane, ref);
  const Occupant& there = from.slots[slot(e, i)];
  if (there.operation != static_cast<std::int64_t>(e) || there.number != i) return nullptr;
  Publication& p = from.publications[e][i];
  return p.tile == lane.tile && p.index == ref.publication ? &p : nullptr;
}

// The earliest event by which `reader` made known that it got so far; its end of the operation
// counts, too. Null: there is none yet.
const Clock* Engine::find_post(std::size_t reader, std::size_t operation, std::size_t lane,
                               std::uint32_t tick) const {
  const Member& m = members_[reader];
  const auto& posts = m.lanes[lane].posts[operation];
  const auto it = std::partition_point(posts.begin(), posts.end(),
                                       [tick](const Post& p) { return p.tick < tick; });
  if (it != posts.end()) return &it->when;
  return operation < m.finished.size() ? &m.finished[operation] : nullptr;
}

// Rule 3. Adds to `known` what the publisher learns by it.
bool Engine::is_released(const Member& m, std::size_t operation, const Publication& p,
                         Clock* known) const {
  if (static_cast<std::int64_t>(operation) <= m.all_finished) return true;
  const std::uint32_t round = p.tile / setting_.lanes;
  for (const Reader& r : plan(m.rank, operation).readers[p.index]) {
    const Clock* then =
        find_post(r.rank, operation, p.tile % setting_.lanes, round * r.ticks + r.tick);
    if (then == nullptr) return false;
    join(*known, *then);
  }
  return true;
}

bool Engine::is_slot_free(Lane& lane, const PlanStep& step, Clock* known) {
  const Member& m = member(lane);
  const std::uint32_t i =
      lane.tile * static_cast<std::uint32_t>(plan(lane).published.size()) + step.publication;
  const Occupant& now = m.slots[slot(m.operation, i)];
  const bool same = now.operation == static_cast<std::int64_t>(m.operation);
  if (i >= setting_.slots && !(same && now.number == i - setting_.slots)) return false;  // rule 2
  if (now.operation < 0 || setting_.rendezvous) return true;
  const auto e = static_cast<std::size_t>(now.operation);
  return is_released(m, e, m.publications[e][now.number], known);
}

// Whether what `step` (null: the end of the tile) overwrites is no longer lent.
bool Engine::lent_is_read(Lane& lane, const PlanStep* step, Clock* known) {
  const Member& m = member(lane);
  const auto cells = step == nullptr ? std::vector<std::uint32_t>{} : cells_written(lane, *step);
  for (std::uint32_t i : lane.lent) {
    const Publication& p = m.publications[m.operation][i];
    const bool hit = std::any_of(cells.begin(), cells.end(), [&](std::uint32_t c) {
      return std::find(p.cells.begin(), p.cells.end(), c) != p.cells.end();
    });
    if ((hit || step == nullptr) && !is_released(m, m.operation, p, known)) return false;
  }
  return true;
}

std::vector<std::uint32_t> Engine::cells_written(const Lane& lane, const PlanStep& step) const {
  const Plan& p = plan(lane);
  std::vector<std::uint32_t> cells;
  if (!has(step, PlanStep::store)) return cells;
  const std::size_t pieces = has(step, PlanStep::combine) ? 1 : step.operands;
  for (std::size_t k = 0; k < pieces; ++k) {
    const auto piece = p.schedule.piece(destination(step), k);
    const bool own = p.refs[step.first_ref + k].rank == lane.rank;
    if (pieces > 1 && own && p.schedule.piece(source(step), k) == piece) continue;
    cells.insert(cells.end(), piece.begin(), piece.end());
  }
  return cells;
}

std::vector<std::uint32_t> Engine::published_cells(const Lane& lane, const PlanStep& step) const {
  const Schedule& s = plan(lane).schedule;
  if (has(step, PlanStep::store)) return s.piece(destination(step), 0);
  const Step& send = s.steps[plan(lane).step_of[lane.pc]];
  std::vector<std::uint32_t> cells;
  for (std::uint32_t k = 0; k < step.operands; ++k) {
    const auto piece = s.piece(source(step), k);
    const bool own = step.operands > 1 && send.peers[k] == s.rank;
    if (own)
      cells.insert(cells.end(), piece.size(), kNobody);
    else
      cells.insert(cells.end(), piece.begin(), piece.end());
  }
  return cells;
}

// A reader that may still read the lent cell, as far as is known; else null.
const Engine::Read* Engine::unread(const Lane& lane, const Clock& known, const Publication& p,
                                   std::uint32_t cell) const {
  for (const Reader& reader : plan(lane).readers[p.index]) {
    const auto first = p.cells.begin() + reader.offset, last = first + reader.count;
    if (std::find(first, last, cell) == last) continue;
    for (const Read& r : p.reads)
      if (r.rank == reader.rank &&
          (r.left > 0 || r.when > known[self(r.rank, p.tile % setting_.lanes)]))
        return &r;
  }
  return nullptr;
}

// A reader that may still read the publication, as far as is known; else null.
const Engine::Read* Engine::unread(const Clock& known, const Publication& p) const {
  for (const Read& r : p.reads)
    if (r.left > 0 || r.when > known[self(r.rank, p.tile % setting_.lanes)]) return &r;
  return nullptr;
}

}  // namespace anyccl::verify
