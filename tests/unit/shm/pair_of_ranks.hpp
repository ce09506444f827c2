#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <memory>
#include <thread>

#include "platform/transports/shm/shm_transport.hpp"
#include "support/transports.hpp"

namespace anyccl::shm::test {

inline constexpr std::size_t kRingBytes = std::size_t{4} << 20;

/// Two ranks that are threads of this process.
inline std::array<std::unique_ptr<Transport>, 2> make_pair_of_ranks(bool cores_are_shared = false) {
  std::array<int, 2> fds{};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds.data()), 0);
  std::array<std::unique_ptr<Transport>, 2> ranks;
  const auto make = [&](std::size_t me) {
    std::vector<PeerSocket> peers;
    peers.push_back({Rank{static_cast<std::int32_t>(1 - me)}, UniqueFd(fds[me]), true, true});
    const auto context = std::make_shared<link::Context>(Rank{static_cast<std::int32_t>(me)}, 0);
    auto made = make_shm_transport(anyccl::test::open_channels(context, std::move(peers)),
                                   {.me = context->me,
                                    .context = context,
                                    .ranks = 2,
                                    .banks = 2,
                                    .slots = 16,
                                    .ring_bytes = kRingBytes,
                                    .cores_are_shared = cores_are_shared,
                                    .deadline = Deadline::in(std::chrono::seconds(60))});
    ASSERT_TRUE(made.ok()) << made.status().message();
    ranks[me] = std::move(made->transport);
  };
  std::thread other(make, 1);
  make(0);
  other.join();
  return ranks;
}

}  // namespace anyccl::shm::test
