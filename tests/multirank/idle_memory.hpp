#pragma once

#include <atomic>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

#include "c/handle.hpp"
#include "framework/communicator/comm_memory.hpp"
#include "support/ranks.hpp"

namespace anyccl::test {

/// Reduces vectors of random sizes with ranks that are late at random, while each rank gives back
/// its idle memory whenever it may.
inline void reduce_while_memory_is_given_back(Communicator& comm, int rounds) {
  std::atomic<bool> over{false};
  std::atomic<int> given_back{0};
  CommMemory mine(*comm.handle()->comm);
  std::thread giver([&] {
    while (!over.load()) {
      const std::size_t before = mine.bytes();
      if (mine.give_back() == GivenBack::all && mine.bytes() < before) ++given_back;
      std::this_thread::yield();
    }
  });
  std::minstd_rand sizes(42);  // equal on all ranks
  std::minstd_rand pauses(static_cast<unsigned>(index(comm.rank())) + 1);
  for (int round = 0; round < rounds; ++round) {
    const std::size_t count = 1 + sizes() % 300000;
    if (pauses() % 4 == 0)  // a rank that lags behind: any length is right
      std::this_thread::sleep_for(std::chrono::microseconds(pauses() % 2000));
    std::vector<float> x(count, static_cast<float>(index(comm.rank()) + round));
    ASSERT_OK(wait(comm.all_reduce(view(x), view(x), ReduceOp::sum)));
    const int n = comm.size();
    EXPECT_EQ(x, std::vector<float>(count, static_cast<float>(n * (n - 1) / 2 + n * round)));
  }
  ASSERT_OK(wait(comm.barrier()));  // all have read what this rank sent
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (given_back.load() == 0 && std::chrono::steady_clock::now() < limit)
    std::this_thread::yield();
  over = true;
  giver.join();
  EXPECT_GT(given_back.load(), 0);
}

}  // namespace anyccl::test
