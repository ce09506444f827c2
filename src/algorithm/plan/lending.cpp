#include "algorithm/plan/lending.hpp"

#include <algorithm>

namespace anyccl {
namespace {

/// Messages match in their order: which one entry `piece` of step `step` is.
template <typename Entry>
std::size_t number_of(std::span<const Entry> entries, std::uint32_t step, std::uint32_t piece) {
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const Entry& e) {
    return e.step == step && e.piece == piece;
  });
  return static_cast<std::size_t>(found - entries.begin());
}

}  // namespace

bool Lending::may_lend(std::uint32_t at, std::uint32_t first, std::uint32_t pieces) const {
  const Step& send = mine_.steps[at];
  const bool personal = send.src.stride > 0;
  const auto from = personal ? first : 0U;
  const auto to = personal ? first + pieces : static_cast<std::uint32_t>(send.peers.size());
  for (std::uint32_t k = from; k < to; ++k) {
    if (send.peers[k] == mine_.rank) continue;  // nobody reads the rank's own piece
    for (const std::uint32_t cell : mine_.piece(send.src, k))
      for (const std::uint32_t write : liveness_.writes_after(at, cell))
        if (!is_read_before(write, cell, at, k)) return false;
  }
  return true;
}

/// Whether step `write` brings into `cell` what the reader of `entry` of send `at` published after
/// it had read that. No other message will do: where nothing is combined, each is put into place as
/// it comes. Pieces of v-forms may overlap in ways that the cells do not show.
bool Lending::is_read_before(std::uint32_t write, std::uint32_t cell, std::uint32_t at,
                             std::uint32_t entry) const {
  const Step& step = mine_.steps[write];
  const Rank reader = mine_.steps[at].peers[entry];
  if (!mine_.contract.equal_blocks() || (step.op != Op::recv && step.op != Op::recv_reduce))
    return false;
  const Matching& theirs = matchings_[uindex(reader)];
  const auto read = theirs.received_from(mine_.rank);
  const auto published = theirs.sent_to(mine_.rank);
  const std::size_t lent = number_of(my_matching_.sent_to(reader), at, entry);
  for (std::uint32_t k = 0; k < step.peers.size(); ++k) {
    if (step.peers[k] != reader) continue;
    const auto written = mine_.piece(step.dst, step.op == Op::recv ? k : 0);
    const std::size_t got = number_of(my_matching_.received_from(reader), write, k);
    if (std::find(written.begin(), written.end(), cell) != written.end() &&
        published[got].step > read[lent].step)
      return true;
  }
  return false;
}

}  // namespace anyccl
