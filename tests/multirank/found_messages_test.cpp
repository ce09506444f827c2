// Receives of messages that probes have found.

#include <array>
#include <atomic>
#include <thread>

#include "support/ranks.hpp"

namespace anyccl::test {
namespace {

class FoundMessages : public testing::TestWithParam<const char*> {
  const Environment transport_{{{"ANYCCL_TRANSPORT", GetParam()}}};
};
INSTANTIATE_TEST_SUITE_P(Over, FoundMessages, testing::Values("loopback", "unix", "tcp"),
                         [](const auto& test) { return std::string(test.param); });

/// As objects do: their receivers do not know how long they are.
TEST_P(FoundMessages, come_whole_to_one_of_several_threads) {
  constexpr int kMessages = 200, kThreads = 3;
  run_ranks(2, [](Communicator& comm) {
    if (comm.rank() == Rank{0}) {
      for (int i = 0; i < kMessages; ++i) {
        const std::vector<std::int32_t> x(static_cast<std::size_t>(1 + i % 5 * 700), i);
        ASSERT_OK(wait(comm.send(view(x), Rank{1}, {}, 7)));
      }
      return;
    }
    std::atomic<int> left = kMessages;
    std::array<std::atomic<int>, kMessages> seen{};
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        while (left.load() > 0) {
          const auto found = probe_message_for(comm, t == 0 ? kAnySource : Rank{0}, 20, 7);
          if (found.status().code() == Code::in_progress) continue;
          ASSERT_OK(found.status());
          std::vector<std::int32_t> x(found->count);
          auto work = recv_found(comm, view(x), *found);
          ASSERT_OK(work.status());
          if (!work->has_value()) continue;  // another thread was faster
          ASSERT_OK((*work)->wait());
          --left;
          ++seen[static_cast<std::size_t>(x[0])];
          EXPECT_EQ(x,
                    std::vector<std::int32_t>(static_cast<std::size_t>(1 + x[0] % 5 * 700), x[0]));
        }
      });
    for (std::thread& thread : threads) thread.join();
    for (const auto& times : seen) EXPECT_EQ(times.load(), 1);
  });
}

TEST_P(FoundMessages, that_are_gone_are_nothing) {
  run_ranks(2, [](Communicator& comm) {
    unsigned limit_ms = 1;
    EXPECT_EQ(anycclCommGetTimeout(comm.handle(), &limit_ms), anycclSuccess);
    std::vector<float> x(3, 1.0F);
    if (comm.rank() == Rank{0}) {
      ASSERT_OK(wait(comm.send(view(x), Rank{1}, {}, 7)));
      ASSERT_OK(wait(comm.barrier()));
      return;
    }
    const auto found = probe_message(comm, Rank{0}, 7);
    ASSERT_OK(found.status());
    ASSERT_OK(wait(comm.recv(view(x), Rank{0}, {}, 7)));
    const auto work = recv_found(comm, view(x), *found);
    ASSERT_OK(work.status());
    EXPECT_FALSE(work->has_value());
    anycclWork_t none = nullptr;
    EXPECT_EQ(anycclRecvFound(x.data(), nullptr, comm.handle(), &none), anycclInvalidArgument);
    MessageInfo wrong = *found;
    wrong.source = Rank{5};
    EXPECT_EQ(recv_found(comm, view(x), wrong).status().code(), Code::invalid_argument);
    ASSERT_OK(wait(comm.barrier()));
  });
}

}  // namespace
}  // namespace anyccl::test
