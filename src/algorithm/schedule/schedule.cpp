#include "algorithm/schedule/schedule.hpp"

#include <algorithm>
#include <utility>

namespace anyccl {
namespace {

constexpr std::uint32_t kNoCell = ~0U;

void sort_unique(std::vector<std::uint32_t>& v) {
  std::sort(v.begin(), v.end());
  v.erase(std::unique(v.begin(), v.end()), v.end());
}

void append(std::vector<std::uint32_t>& to, const std::vector<std::uint32_t>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

std::uint32_t Schedule::chunks(Space space) const {
  if (space == Space::scratch) return static_cast<std::uint32_t>(scratch.size());
  return contract.chunks(rank, space);
}

Origin Schedule::origin(Space space, std::uint32_t chunk) const {
  if (space == Space::scratch) return scratch[chunk];
  return contract.origin(rank, space, chunk % chunks(space));
}

std::uint32_t Schedule::cell(Space space, std::uint32_t chunk) const {
  const std::uint32_t in = chunks(Space::input), out = chunks(Space::output);
  if (space == Space::scratch) return chunk < scratch.size() ? in + out + chunk : kNoCell;
  if (chunks(space) == 0) return kNoCell;
  const bool input = space == Space::input;
  if (!contract.shape().in_place || in == 0 || out == 0)
    return input ? chunk % in : in + chunk % out;
  const std::uint32_t place = contract.place(rank, space, chunk % (input ? in : out));
  return in > out ? place : in + place;  // all are cells of the larger side
}

std::uint32_t Schedule::cells() const {
  return chunks(Space::input) + chunks(Space::output) + chunks(Space::scratch);
}

std::vector<std::uint32_t> Schedule::piece(const Slice& slice, std::size_t k) const {
  std::vector<std::uint32_t> cells(slice.count);
  const std::uint32_t first = slice.first + static_cast<std::uint32_t>(k) * slice.stride;
  for (std::uint32_t i = 0; i < slice.count; ++i) cells[i] = cell(slice.space, first + i);
  return cells;
}

Schedule::Access Schedule::access(const Step& step) const {
  Access a;
  const bool moves = step.op == Op::copy || step.op == Op::recv;  // piece k to piece k
  for (std::size_t k = 0; k < step.peers.size(); ++k) {
    const bool reads = (step.peers[k] == rank) != (step.op == Op::send);
    const auto source = reads ? piece(step.src, k) : std::vector<std::uint32_t>{};
    const auto target = moves ? piece(step.dst, k) : std::vector<std::uint32_t>{};
    if (moves && source == target) continue;  // already where it belongs
    append(a.reads, source);
    append(a.writes, target);
  }
  if (step.op == Op::reduce) append(a.reads, piece(step.dst, 0));
  if (step.op == Op::reduce || step.op == Op::recv_reduce) append(a.writes, piece(step.dst, 0));
  sort_unique(a.reads);
  sort_unique(a.writes);
  return a;
}

Builder::Builder(const Shape& shape, Rank me, std::uint32_t chunks_per_block)
    : schedule_{.rank = me, .contract = Contract(shape, chunks_per_block)} {}

Slice Builder::scratch(Origin first, std::uint32_t count) {
  const std::uint32_t at = schedule_.chunks(Space::scratch);
  for (std::uint32_t i = 0; i < count; ++i)
    schedule_.scratch.push_back((first + i) % schedule_.contract.origins());
  return {Space::scratch, at, count};
}

Builder& Builder::copy(Slice src, Slice dst) {
  return add({Op::copy, src, dst, {schedule_.rank}});
}

Builder& Builder::reduce(Slice src, Slice dst) {
  return add({Op::reduce, src, dst, {schedule_.rank}});
}

Builder& Builder::send(PeerList to, Slice src) {
  const Rank me = schedule_.rank;
  if (std::all_of(to.begin(), to.end(), [me](Rank r) { return r == me; })) return *this;
  return add({Op::send, src, {.count = 0}, std::move(to)});
}

Builder& Builder::recv(PeerList from, Slice dst, Slice own) {
  return add({Op::recv, own, dst, std::move(from)});
}

Builder& Builder::recv_reduce(PeerList from, Slice own, Slice dst) {
  if (from == PeerList{schedule_.rank}) return copy(own, dst);
  return add({Op::recv_reduce, own, dst, std::move(from)});
}

Builder& Builder::recv_reduce(Rank from, Slice own, Slice dst) {
  return recv_reduce(PeerList{schedule_.rank, from}, own, dst);
}

PeerList Builder::everyone() const {
  PeerList all;
  for (int r = 0; r < schedule_.contract.shape().size; ++r) all.push_back(Rank{r});
  return all;
}

Builder& Builder::set_place(std::string_view place) {
  place_ = place;
  return *this;
}

Schedule Builder::finish() && {
  return std::move(schedule_);
}

Builder& Builder::add(Step step) {
  const bool remote = std::any_of(step.peers.begin(), step.peers.end(),
                                  [this](Rank r) { return r != schedule_.rank; });
  const bool depends = schedule_.contract.shape().with_dependencies;
  if (depends || !remote) {
    const Schedule::Access access = schedule_.access(step);
    if (access.reads.empty() && access.writes.empty() && !remote) return *this;
    if (depends) step.after = dependencies(access);
  }
  if (!place_.empty()) {
    schedule_.places.resize(schedule_.steps.size());
    schedule_.places.push_back(place_);
  }
  schedule_.steps.push_back(std::move(step));
  return *this;
}

std::vector<std::uint32_t> Builder::dependencies(const Schedule::Access& access) {
  const auto id = static_cast<std::uint32_t>(schedule_.steps.size());
  std::vector<std::uint32_t> after;
  cells_.resize(schedule_.cells());
  const auto wait_for_writer = [&](const Cell& cell) {
    if (cell.writer >= 0) after.push_back(static_cast<std::uint32_t>(cell.writer));
  };
  for (std::uint32_t c : access.reads) {
    if (c >= cells_.size()) continue;  // no such chunk: check_structure() says so
    wait_for_writer(cells_[c]);
    cells_[c].readers.push_back(id);
  }
  for (std::uint32_t c : access.writes) {
    if (c >= cells_.size()) continue;
    wait_for_writer(cells_[c]);
    for (std::uint32_t reader : cells_[c].readers)
      if (reader != id) after.push_back(reader);
    cells_[c] = {.writer = id, .readers = {}};
  }
  sort_unique(after);
  return after;
}

}  // namespace anyccl
