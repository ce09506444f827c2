#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "framework/communicator/membership.hpp"
#include "unit/framework/fake_peers.hpp"

namespace anyccl::test {

/// Peers that are always there, and have published whatever is looked for.
class PlayedPeers final : public FakePeers {
 public:
  explicit PlayedPeers(std::vector<Rank> peers) : FakePeers(1.0F, std::move(peers)) {}
  PeerState state(Rank) override { return PeerState::present; }

 private:
  bool has_published(std::uint32_t) override { return true; }
};

/// Of rank 0, with played peers: what its communicator costs without a transport.
inline Membership rank_0_of(int size) {
  Membership m;
  m.size = size;
  m.near_of.assign(static_cast<std::size_t>(size), 0);
  m.ring_bytes = std::size_t{1} << 20;
  std::vector<Rank> peers;
  for (int r = 1; r < size; ++r) peers.push_back(Rank{r});
  m.transports.push_back(std::make_unique<PlayedPeers>(std::move(peers)));
  return m;
}

}  // namespace anyccl::test
