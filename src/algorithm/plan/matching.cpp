#include "algorithm/plan/matching.hpp"

#include <algorithm>

namespace anyccl {
namespace {

template <typename Entry>
bool by_peer(const Entry& a, const Entry& b) {
  return a.peer < b.peer;
}

template <typename Entry>
std::span<const Entry> entries_with(const std::vector<Entry>& entries, Rank peer) {
  const Entry key{.peer = peer};
  const auto [first, last] = std::equal_range(entries.begin(), entries.end(), key, by_peer<Entry>);
  return {first, last};
}

}  // namespace

std::span<const Message> Matching::sent_to(Rank peer) const {
  return entries_with(sent, peer);
}
std::span<const Receipt> Matching::received_from(Rank peer) const {
  return entries_with(received, peer);
}

Matching Matching::with(Rank peer) const {
  const auto to = sent_to(peer);
  const auto from = received_from(peer);
  return {{to.begin(), to.end()}, {from.begin(), from.end()}, publications, ticks, widest};
}

Matching matching_of(const Schedule& s) {
  Matching matching;
  for (std::uint32_t i = 0; i < s.steps.size(); ++i) {
    const Step& step = s.steps[i];
    matching.widest = std::max(matching.widest, static_cast<std::uint32_t>(step.peers.size()));
    const bool send = step.op == Op::send;
    if (!send && step.op != Op::recv && step.op != Op::recv_reduce) continue;
    const bool split = send && splits(s, step);
    std::uint32_t remote = 0;
    for (std::uint32_t k = 0; k < step.peers.size(); ++k) {
      if (step.peers[k] == s.rank) continue;
      const std::uint32_t publication = matching.publications + (split ? remote : 0);
      const std::uint32_t offset = split || step.src.stride == 0 ? 0 : k * step.src.count;
      if (send)
        matching.sent.push_back({step.peers[k], i, k, publication, offset});
      else
        matching.received.push_back({step.peers[k], i, k, matching.ticks + 1});
      ++remote;
    }
    if (remote == 0) continue;
    if (send)
      matching.publications += split ? remote : 1;
    else
      ++matching.ticks;
  }
  std::stable_sort(matching.sent.begin(), matching.sent.end(), by_peer<Message>);
  std::stable_sort(matching.received.begin(), matching.received.end(), by_peer<Receipt>);
  return matching;
}

bool splits(const Schedule& s, const Step& send) {
  return s.contract.private_sizes() && send.src.stride > 0;
}

std::vector<Origin> origins_of(const Schedule& s, const Slice& slice, std::size_t first,
                               std::size_t pieces) {
  std::vector<Origin> result;
  for (std::size_t k = first; k < first + pieces; ++k)
    for (std::uint32_t c = 0; c < slice.count; ++c)
      result.push_back(
          s.origin(slice.space, slice.first + static_cast<std::uint32_t>(k) * slice.stride + c));
  return result;
}

std::vector<Origin> publication_of(const Schedule& s, const Step& send, std::size_t k) {
  if (send.src.stride == 0) return origins_of(s, send.src, 0);
  return splits(s, send) ? origins_of(s, send.src, k)
                         : origins_of(s, send.src, 0, send.peers.size());
}

}  // namespace anyccl
