#include "algorithm/verify/engine.hpp"

#include <algorithm>
#include <utility>

#include "algorithm/schedule/print.hpp"
#include "base/error.hpp"

namespace anyccl::verify {
Engine::Engine(std::span<const Operation> operations, const Setting& setting, Terms& terms)
    : operations_(operations), setting_(setting), terms_(terms) {
  const std::size_t n = operations[0].plans->size();
  for (const Operation& operation : operations) {
    Readers readers(n);
    for (std::size_t r = 0; r < n; ++r) readers[r].resize((*operation.plans)[r].published.size());
    for (std::size_t r = 0; r < n; ++r)
      for (const Ref& ref : (*operation.plans)[r].refs) {
        if (ref.rank == r || ref.publication >= readers[ref.rank].size()) continue;
        auto& reads = readers[ref.rank][ref.publication];
        if (reads.empty() || reads.back().rank != r) reads.push_back({.rank = r});
        ++reads.back().left;
      }
    readers_.push_back(std::move(readers));
  }
  sent_.resize(n);
  outcome_.output.resize(n);
  members_.resize(n);
  for (std::size_t r = 0; r < n; ++r) {
    Member& m = members_[r];
    m.rank = r;
    m.slots.resize(std::size_t{setting.banks} * setting.slots);
    m.publications.resize(operations.size());
    for (std::size_t i = 0; i < setting.lanes; ++i) {
      m.lanes.push_back({.rank = r, .lane = i});
      m.lanes.back().now.assign(n * setting.lanes, 0);
      m.lanes.back().posts.resize(operations.size());
    }
    begin(m);
  }
}

Result<Outcome> Engine::run() {
  for (bool moved = true; moved;) {
    moved = false;
    for (Member& m : members_) {
      for (Lane& lane : m.lanes)
        while (!m.done && !lane.done && advance(lane)) moved = true;
      if (!m.done && finish(m)) moved = true;
      if (!error_.ok()) return error_;
    }
  }
  Blocker stuck;  // of all that wait, first the one whose wait can never end
  for (Member& m : members_) {
    if (m.done) continue;
    Blocker why = blocker(m);
    if (why.cause || stuck.why.ok()) stuck = std::move(why);
    if (stuck.cause) break;
  }
  if (!stuck.why.ok()) return stuck.why;
  std::uint32_t tiles = 0;
  for (const Operation& operation : operations_) tiles += operation.tiles;
  outcome_.sent = *std::max_element(sent_.begin(), sent_.end()) / tiles;
  outcome_.slots = setting_.slots;
  return std::move(outcome_);
}

bool Engine::fail(Status s) {
  error_ = std::move(s);
  return false;
}

std::uint32_t Engine::run_of(std::size_t operation, std::uint32_t tile) const {
  std::uint32_t run = tile;
  for (std::size_t e = 0; e < operation; ++e) run += operations_[e].tiles;
  return run;
}

// --- one rank's operations and tiles -------------------------------------------------------------

void Engine::begin(Member& m) {
  const Plan& p = plan(m.rank, m.operation);
  const std::uint32_t tiles = operations_[m.operation].tiles;
  m.publications[m.operation].resize(p.published.size() * tiles);
  for (Lane& lane : m.lanes) {
    lane.tile = static_cast<std::uint32_t>(lane.lane);
    lane.done = lane.tile >= tiles;
    lane.memory.assign(p.schedule.cells(), Terms::kGarbage);
    if (!lane.done) begin_tile(lane);
  }
}

// Scratch keeps what the lane's last tile left there.
void Engine::begin_tile(Lane& lane) {
  const Schedule& s = plan(lane).schedule;
  lane.pc = 0;
  lane.published_by = -1;
  lane.lent.clear();
  for (std::uint32_t c = 0; c < s.chunks(Space::output); ++c)
    lane.memory[s.cell(Space::output, c)] = Terms::kGarbage;
  const std::uint32_t run = run_of(member(lane).operation, lane.tile);
  for (std::uint32_t c = 0; c < s.chunks(Space::input); ++c)
    lane.memory[s.cell(Space::input, c)] = terms_.input(s.rank, s.origin(Space::input, c), run);
}

// The ranks whose contributions a result must have.
std::bitset<kMaxRanks> Engine::wanted_ranks(const Schedule& s, Origin want) const {
  std::bitset<kMaxRanks> wanted;
  const bool one = s.contract.combine() == Combine::none;
  if (one) wanted.set(uindex(s.contract.contributor(want)));
  for (std::size_t r = 0; r < members_.size() && !one; ++r)
    wanted.set(r, s.contract.combines(s.rank, Rank(static_cast<int>(r))));
  return wanted;
}

std::string Engine::wanted_text(const Schedule& s, Origin want) {
  if (s.contract.combine() == Combine::none)
    return fmt::format("rank {}'s", index(s.contract.contributor(want)));
  if (s.contract.same_everywhere()) return "the sum of all ranks'";
  const bool with_own = s.contract.combines(s.rank, s.rank);
  return fmt::format("the sum of ranks 0 to {}'s", index(s.rank) - (with_own ? 0 : 1));
}

bool Engine::end_tile(Lane& lane) {
  if (setting_.rendezvous && !lent_is_read(lane, nullptr, &lane.now)) return false;
  const Schedule& s = plan(lane).schedule;
  const std::size_t e = member(lane).operation;
  std::vector<TermId> output;
  for (std::uint32_t c = 0; c < s.chunks(Space::output); ++c) {
    const TermId id = lane.memory[s.cell(Space::output, c)];
    const Term& got = terms_[id];
    const Origin want = s.origin(Space::output, c);
    const bool right = id != Terms::kGarbage && got.origin == want &&
                       got.run == run_of(e, lane.tile) && got.ranks == wanted_ranks(s, want);
    if (!right)
      return fail(error(Code::internal,
                        "rank {} output chunk {} ends as {} instead of {} chunk {}{}", lane.rank, c,
                        terms_.text(id), wanted_text(s, want), want, when(e, lane.tile)));
    output.push_back(id);
    outcome_.roundings = std::max(outcome_.roundings, got.roundings);
  }
  if (lane.tile + 1 == operations_[e].tiles) outcome_.output[lane.rank] = std::move(output);
  lane.tile += setting_.lanes;
  lane.done = lane.tile >= operations_[e].tiles;
  if (!lane.done) begin_tile(lane);
  return true;
}

// Rules 5 and 6: an operation ends when nobody will read its memory any more.
bool Engine::finish(Member& m) {
  for (const Lane& lane : m.lanes)
    if (!lane.done) return false;
  Clock now = m.lanes[0].now;
  for (const Lane& lane : m.lanes) join(now, lane.now);
  const auto& publications = m.publications[m.operation];
  for (const Publication& p : publications)
    if (p.lent && !is_released(m, m.operation, p, &now)) return false;
  for (const Publication& p : publications)
    if (const Read* late = unread(now, p); p.lent && late != nullptr)
      return fail(error(Code::internal,
                        "rank {} returns while rank {} may still read what {} lent{}", m.rank,
                        late->rank, step_text(plan(m.rank, m.operation).schedule, p.step),
                        when(m.operation, p.tile)));
  ++now[self(m.rank, 0)];
  if (plan(m.rank, m.operation).everyone && m.operation > 0) {
    const std::size_t before = m.operation - 1;
    for (const Member& other : members_)
      if (other.finished.size() <= before ||
          other.finished[before][self(other.rank, 0)] > now[self(other.rank, 0)])
        return fail(
            error(Code::internal,
                  "rank {} ends operation {} and believes that everyone has finished the one "
                  "before, but rank {} may not have: its result does not depend on everyone",
                  m.rank, m.operation + 1, other.rank));
    m.all_finished = static_cast<std::int64_t>(before);
  }
  m.finished.push_back(now);
  for (Lane& lane : m.lanes) lane.now = now;
  m.done = ++m.operation == operations_.size();
  if (!m.done) begin(m);
  return true;
}

// --- one step ------------------------------------------------------------------------------------

bool Engine::advance(Lane& lane) {
  if (!error_.ok()) return false;
  if (lane.pc == plan(lane).steps.size()) return end_tile(lane);
  const PlanStep& step = plan(lane).steps[lane.pc];
  if (!is_ready(lane, step)) return false;
  ++lane.now[self(lane.rank, lane.lane)];
  before_ = lane.now;
  std::vector<std::vector<TermId>> values = load_operands(lane, step);
  if (!error_.ok()) return false;
  if (has(step, PlanStep::combine) && !combine(lane, step, values)) return false;
  if (setting_.trace) trace(lane, step, values);
  if (has(step, PlanStep::store) && !store(lane, step, values)) return false;
  if (has(step, PlanStep::publish) && !publish(lane, step, values)) return false;
  post(lane, step);
  ++lane.pc;
  return true;
}

// Whether the step can run. If so, the lane's clock takes in the posts that allow it.
bool Engine::is_ready(Lane& lane, const PlanStep& step) {
  const Ref* refs = plan(lane).refs.data() + step.first_ref;
  for (std::uint32_t k = 0; k < step.operands; ++k)
    if (refs[k].rank != lane.rank && find_publication(lane, refs[k]) == nullptr) return false;
  learned_ = lane.now;
  if (has(step, PlanStep::publish) && !is_slot_free(lane, step, &learned_)) return false;
  if (setting_.rendezvous && !lent_is_read(lane, &step, &learned_)) return false;
  std::swap(lane.now, learned_);
  return true;
}

std::vector<std::vector<TermId>> Engine::load_operands(Lane& lane, const PlanStep& step) {
  const Schedule& s = plan(lane).schedule;
  const auto load = [&](const Slice& slice, std::size_t k) {
    std::vector<TermId> values;
    for (std::uint32_t c : s.piece(slice, k)) values.push_back(lane.memory[c]);
    return values;
  };
  std::vector<std::vector<TermId>> values;
  if (has(step, PlanStep::accumulate)) values.push_back(load(destination(step), 0));
  for (std::uint32_t k = 0; k < step.operands; ++k) {
    const std::size_t at = step.first_ref + k;
    const Ref& ref = plan(lane).refs[at];
    values.push_back(ref.rank == lane.rank ? load(source(step), k)
                                           : receive(lane, ref, at, step.count));
  }
  return values;
}

// The chunks that `ref`, number `at` of Plan::refs, reads. Counts them as sent and as read, and the
// lane's clock takes in the publication's.
std::vector<TermId> Engine::receive(Lane& lane, const Ref& ref, std::size_t at,
                                    std::uint32_t count) {
  Publication& p = *find_publication(lane, ref);
  const Plan& theirs = plan(ref.rank, member(lane).operation);
  const auto told = std::find_if(theirs.readers[p.index].begin(), theirs.readers[p.index].end(),
                                 [&](const Reader& r) { return r.rank == lane.rank; });
  const bool expected =
      told != theirs.readers[p.index].end() && told->offset == ref.offset && told->count == count;
  if (!expected || p.values.size() != plan(lane).read_from[at].size() ||
      plan(lane).read_from[at] != theirs.published[p.index]) {
    fail(error(Code::internal,
               "{} reads {} chunks from chunk {} of rank {}'s publication {}, which {}",
               where(lane), count, ref.offset, ref.rank, p.index,
               expected ? "holds other chunks" : "is not meant for it"));
    return {};
  }
  join(lane.now, p.when);
  lane.depth = std::max(lane.depth, p.depth);
  sent_[ref.rank] += count;
  const auto read = std::find_if(p.reads.begin(), p.reads.end(),
                                 [&](const Read& r) { return r.rank == lane.rank; });
  --read->left;
  read->when = lane.now[self(lane.rank, lane.lane)];
  const auto first = p.values.begin() + ref.offset;
  std::vector<TermId> values(first, first + count);
  if (setting_.trace)
    outcome_.trace.messages.push_back({ref.rank, lane.rank, p.depth, lane.pc, values});
  return values;
}

bool Engine::combine(Lane& lane, const PlanStep& step, std::vector<std::vector<TermId>>& values) {
  std::vector<TermId> result, parts;
  for (std::uint32_t c = 0; c < step.count; ++c) {
    parts.clear();
    for (const auto& v : values) parts.push_back(v[c]);
    auto term = terms_.combine(plan(lane).schedule.contract.combine(), parts);
    if (!term.ok()) {
      const Slice chunk{Space(step.dst_space), step.dst + c};
      return fail(error(Code::internal, "{} on {} {}", where(lane),
                        chunk_text(plan(lane).schedule, chunk), term.status().message()));
    }
    result.push_back(*term);
  }
  values = {std::move(result)};
  return true;
}

bool Engine::store(Lane& lane, const PlanStep& step,
                   const std::vector<std::vector<TermId>>& values) {
  const Schedule& s = plan(lane).schedule;
  const auto& publications = member(lane).publications[member(lane).operation];
  for (std::size_t k = 0; k < values.size(); ++k) {
    const Ref& ref = plan(lane).refs[step.first_ref + k];
    const auto cells = s.piece(destination(step), k);
    if (!has(step, PlanStep::combine) && ref.rank == lane.rank && s.piece(source(step), k) == cells)
      continue;  // already where it belongs
    // Operands that are neither combined nor published are put into place as they come.
    const bool streams = !has(step, PlanStep::combine) && !has(step, PlanStep::publish);
    Clock& known = streams ? before_ : lane.now;
    if (streams && !lane.lent.empty() && ref.rank != lane.rank)
      join(known, find_publication(lane, ref)->when);
    for (std::size_t i = 0; i < cells.size(); ++i) {
      for (std::uint32_t number : lane.lent) {
        const Publication& p = publications[number];
        if (const Read* late = unread(lane, known, p, cells[i]); late != nullptr)
          return fail(error(Code::internal,
                            "{} overwrites {} while rank {} may still read it: lent by {}{}",
                            where(lane), cell_text(s, cells[i]), late->rank, step_text(s, p.step),
                            when(member(lane).operation, lane.tile)));
      }
      lane.memory[cells[i]] = values[k][i];
    }
  }
  return true;
}

bool Engine::publish(Lane& lane, const PlanStep& step,
                     const std::vector<std::vector<TermId>>& values) {
  Member& m = member(lane);
  const std::uint32_t step_id = plan(lane).step_of[lane.pc];
  const std::uint32_t i =
      lane.tile * static_cast<std::uint32_t>(plan(lane).published.size()) + step.publication;
  Occupant& slot_now = m.slots[slot(m.operation, i)];
  if (slot_now.operation >= 0) {
    const auto e = static_cast<std::size_t>(slot_now.operation);
    const Publication& before = m.publications[e][slot_now.number];
    if (const Read* late = unread(lane.now, before); late != nullptr)
      return fail(
          error(Code::internal,
                "{}{} reuses slot {} of bank {} before rank {} has surely read what {}{} put "
                "there",
                where(lane), when(m.operation, lane.tile), i % setting_.slots,
                m.operation % setting_.banks, late->rank,
                step_text(plan(m.rank, e).schedule, before.step), when(e, before.tile)));
  }
  const bool first = lane.published_by != static_cast<std::int64_t>(step_id);
  lane.published_by = step_id;
  if (first) ++lane.depth;
  outcome_.rounds = std::max(outcome_.rounds, lane.depth);
  Publication& p = m.publications[m.operation][i];
  p = {.made = true,
       .lent = setting_.rendezvous ||
               (has(step, PlanStep::lendable) && !setting_.lends.empty() && setting_.lends[m.rank]),
       .number = i,
       .tile = lane.tile,
       .index = step.publication,
       .step = step_id,
       .depth = lane.depth,
       .reads = readers_[m.operation][m.rank][step.publication],
       .when = lane.now};
  for (const auto& v : values) p.values.insert(p.values.end(), v.begin(), v.end());
  if (p.lent) {
    p.cells = published_cells(lane, step);
    lane.lent.push_back(i);
  }
  slot_now = {static_cast<std::int64_t>(m.operation), i};
  return true;
}

void Engine::post(Lane& lane, const PlanStep& step) {
  if (step.tick == 0 || !plan(lane).posts_each) return;
  lane.posts[member(lane).operation].push_back(
      {lane.tile / setting_.lanes * plan(lane).ticks + step.tick, lane.now});
}

// Notes the round and the sums of the step. Comes before the step publishes, which is of the next
// round.
void Engine::trace(const Lane& lane, const PlanStep& step,
                   const std::vector<std::vector<TermId>>& values) {
  auto& steps = outcome_.trace.steps;
  steps.resize(members_.size());
  steps[lane.rank].resize(plan(lane).steps.size());
  Trace::Step& now = steps[lane.rank][lane.pc];
  now.round = lane.depth;
  if (has(step, PlanStep::combine)) now.sums = values[0];
}

}  // namespace anyccl::verify
