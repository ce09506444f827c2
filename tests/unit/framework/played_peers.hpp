#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "framework/membership/membership.hpp"
#include "unit/framework/fake_peers.hpp"

namespace anyccl::test {

/// Rank 0's membership, whose peers have published all that it looks for: it costs no transport.
inline Membership rank_0_of(int size) {
  Membership m;
  m.size = size;
  m.near_of.assign(static_cast<std::size_t>(size), 0);
  m.ring_bytes = std::size_t{1} << 20;
  std::vector<Rank> peers;
  for (int r = 1; r < size; ++r) peers.push_back(Rank{r});
  m.transports.push_back(std::make_unique<PresentPeers>(std::move(peers), true));
  return m;
}

}  // namespace anyccl::test
