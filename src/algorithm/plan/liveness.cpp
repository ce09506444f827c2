#include "algorithm/plan/liveness.hpp"

#include <algorithm>
#include <optional>

namespace anyccl {

Liveness::Liveness(const Schedule& s) : uses_(s.cells()) {
  for (std::uint32_t i = 0; i < s.steps.size(); ++i) {
    const Schedule::Access access = s.access(s.steps[i]);
    for (std::uint32_t c : access.reads) uses_[c].push_back({i, false});
    for (std::uint32_t c : access.writes) uses_[c].push_back({i, true});
  }
}

std::vector<Liveness::Use>::const_iterator Liveness::first_use_after(std::uint32_t step,
                                                                     std::uint32_t cell) const {
  return std::partition_point(uses_[cell].begin(), uses_[cell].end(),
                              [step](const Use& u) { return u.step <= step; });
}

bool Liveness::dead_after(std::uint32_t step, const std::vector<std::uint32_t>& cells,
                          bool scratch) const {
  return std::all_of(cells.begin(), cells.end(), [&](std::uint32_t c) {
    const auto next = first_use_after(step, c);
    return next == uses_[c].end() ? scratch : next->write;
  });
}

bool Liveness::written_after(std::uint32_t step, const std::vector<std::uint32_t>& cells) const {
  return written_between(step, ~0U, cells);
}

std::vector<std::uint32_t> Liveness::writes_after(std::uint32_t step, std::uint32_t cell) const {
  std::vector<std::uint32_t> steps;
  for (auto use = first_use_after(step, cell); use != uses_[cell].end(); ++use)
    if (use->write) steps.push_back(use->step);
  return steps;
}

bool Liveness::written_between(std::uint32_t from, std::uint32_t to,
                               const std::vector<std::uint32_t>& cells) const {
  return std::any_of(cells.begin(), cells.end(), [&](std::uint32_t c) {
    return std::any_of(first_use_after(from, c), uses_[c].end(),
                       [to](const Use& u) { return u.write && u.step < to; });
  });
}

namespace {

using Cells = std::vector<std::uint32_t>;

Cells sorted(Cells cells) {
  std::sort(cells.begin(), cells.end());
  return cells;
}

bool overlap(const Cells& ascending, const Cells& cells) {
  return std::any_of(cells.begin(), cells.end(), [&](std::uint32_t c) {
    return std::binary_search(ascending.begin(), ascending.end(), c);
  });
}

// The cells that a step reads; a send reads on behalf of its peers.
Cells cells_read_by(const Schedule& s, const Step& step) {
  if (step.op != Op::send) return s.access(step).reads;
  Cells cells;
  for (std::size_t k = 0; k < step.peers.size(); ++k)
    for (std::uint32_t c : s.piece(step.src, k)) cells.push_back(c);
  return cells;
}

// Whether `reader` may read `source` where it reads a copy of it now.
bool may_read(const Schedule& s, const Step& reader, const Cells& source) {
  if (reader.op == Op::send) return true;
  if (reader.op != Op::reduce && reader.op != Op::recv_reduce) return false;
  const auto target = s.piece(reader.dst, 0);  // a sum may write just what it reads
  return target == source || !overlap(sorted(source), target);
}

// The steps that read copy `at`, perhaps none, if each of them may as well read its source; else
// nullopt.
std::optional<std::vector<std::uint32_t>> readers_of_guard(const Schedule& s,
                                                           const Liveness& liveness,
                                                           std::uint32_t at) {
  const Step& copy = s.steps[at];
  // In place, pieces of two sizes may overlap in ways the cells do not show.
  if (copy.op != Op::copy || copy.dst.space != Space::scratch || s.contract.private_sizes())
    return {};
  const Cells source = s.piece(copy.src, 0), cells = sorted(s.piece(copy.dst, 0));
  if (copy.peers.size() != 1 || liveness.written_after(at, cells)) return {};
  std::vector<std::uint32_t> readers;
  for (std::uint32_t i = at + 1; i < s.steps.size(); ++i) {
    const Step& step = s.steps[i];
    if (!overlap(cells, cells_read_by(s, step))) continue;
    if (step.src != copy.dst || !may_read(s, step, source) ||
        liveness.written_between(at, i, source))
      return {};
    readers.push_back(i);
  }
  return readers;
}

}  // namespace

Schedule without_guard_copies(const Schedule& schedule, std::vector<std::uint32_t>& step_of) {
  Schedule s = schedule;
  step_of.clear();
  for (std::uint32_t i = 0; i < s.steps.size(); ++i) step_of.push_back(i);
  if (std::none_of(s.steps.begin(), s.steps.end(), [](const Step& step) {
        return step.op == Op::copy && step.dst.space == Space::scratch;
      }))
    return s;
  const Liveness liveness(s);
  std::vector<std::uint32_t> gone;
  for (std::uint32_t i = 0; i < s.steps.size(); ++i) {
    const auto readers = readers_of_guard(s, liveness, i);
    if (!readers) continue;
    for (std::uint32_t r : *readers) s.steps[r].src = s.steps[i].src;
    gone.push_back(i);
  }
  for (std::size_t k = gone.size(); k-- > 0;) {
    s.steps.erase(s.steps.begin() + gone[k]);
    step_of.erase(step_of.begin() + gone[k]);
  }
  return s;
}

}  // namespace anyccl
