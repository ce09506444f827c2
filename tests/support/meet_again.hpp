#pragma once

#include <cstring>

#include "support/ranks.hpp"

namespace anyccl::test {

/// Another communicator of the same ranks, that does not descend from `world`.
inline Communicator meet_again(Communicator& world) {
  anycclUniqueId id{};
  if (world.rank() == Rank{0}) {
    const auto made = UniqueId::create();
    EXPECT_TRUE(made.ok()) << made.status().message();
    id = made->value();
  }
  std::vector<std::uint8_t> bytes(sizeof id);
  std::memcpy(bytes.data(), &id, sizeof id);
  EXPECT_OK(wait(world.broadcast(view(bytes), view(bytes), Rank{0})));
  std::memcpy(&id, bytes.data(), sizeof id);
  auto met = Communicator::from_unique_id(UniqueId(id), world.rank(), world.size());
  EXPECT_TRUE(met.ok()) << met.status().message();
  return std::move(*met);
}

}  // namespace anyccl::test
