// One-sided operations between processes, with peers that die or leave.

#include <csignal>

#include "anyccl/window.hpp"
#include "support/ranks.hpp"

namespace anyccl::test {
namespace {

using Variables = std::vector<std::pair<std::string, std::string>>;
using Bytes = std::vector<std::uint8_t>;

class WindowProcesses : public testing::TestWithParam<std::string> {
 protected:
  std::vector<Outcome> run(int ranks, const Body& body) const {
    return run_processes(
        ranks, body,
        [transport = GetParam()](int) {
          return Variables{{"ANYCCL_TRANSPORT", transport}};
        },
        30);
  }
};
INSTANTIATE_TEST_SUITE_P(Over, WindowProcesses, testing::Values("shm", "unix", "tcp"),
                         [](const auto& transport) { return transport.param; });

void expect_named(const Status& status, Code code, std::initializer_list<const char*> parts) {
  EXPECT_EQ(status.code(), code) << status.message();
  for (const char* part : parts)
    EXPECT_NE(status.message().find(part), std::string::npos)
        << "no '" << part << "' in: " << status.message();
}
void expect_only_rank_1_was_killed(const std::vector<Outcome>& outcomes) {
  for (std::size_t r = 0; r < outcomes.size(); ++r)
    EXPECT_EQ(outcomes[r].exit_code, r == 1 ? -SIGKILL : 0)
        << "rank " << r << ": " << outcomes[r].output;
}

TEST_P(WindowProcesses, put_into_each_other) {
  expect_all_passed(run(3, [](Communicator& comm) {
    constexpr std::size_t kBlock = 1 << 20;
    Bytes memory(3 * kBlock), mine(kBlock, static_cast<std::uint8_t>(10 + index(comm.rank())));
    auto window = Window::create(comm, memory);
    ASSERT_OK(window.status());
    for (int round = 0; round < 3; ++round) {
      for (const std::size_t bytes : {std::size_t{8}, std::size_t{2000}, kBlock})
        for (int peer = 0; peer < 3; ++peer)
          ASSERT_OK(window->put_signal(View(mine.data(), bytes, DType::u8), Rank{peer},
                                       kBlock * uindex(comm.rank())));
      ASSERT_OK(wait_signal(comm, {{Rank{0}, 3}, {Rank{1}, 3}, {Rank{2}, 3}}));
      for (std::size_t i = 0; i < memory.size(); ++i)
        ASSERT_EQ(memory[i], 10 + i / kBlock) << "at " << i;
      memory.assign(memory.size(), 0);
      ASSERT_OK(wait(comm.barrier()));
    }
    ASSERT_OK(window->deregister());
    ASSERT_OK(comm.destroy());
  }));
}

TEST_P(WindowProcesses, name_a_peer_that_died_before_its_signal) {
  expect_only_rank_1_was_killed(run(3, [](Communicator& comm) {
    if (comm.rank() == Rank{1}) ::raise(SIGKILL);
    // Rank 2 may hear of it from rank 0, also before it has sent its signal.
    if (comm.rank() == Rank{2})
      if (const Status sent = signal(comm, Rank{0}); !sent.ok())
        expect_named(sent, Code::remote_error, {"rank 1", "died"});
    expect_named(wait_signal(comm, {{Rank{1}}, {Rank{2}, comm.rank() == Rank{0} ? 1 : 0}}),
                 Code::remote_error, {"rank 1", "died", "in a wait for signals"});
    EXPECT_OK(comm.abort());
  }));
}

TEST_P(WindowProcesses, name_a_peer_that_dies_while_it_is_put_into) {
  expect_only_rank_1_was_killed(run(2, [](Communicator& comm) {
    Bytes memory(1 << 20);
    auto window = Window::create(comm, memory);
    ASSERT_OK(window.status());
    if (comm.rank() == Rank{1}) {
      ASSERT_OK(wait_signal(comm, {{Rank{0}, 3}}));
      ::raise(SIGKILL);
    }
    Status status;
    while (status.ok()) status = window->put_signal(view(memory), Rank{1}, 0);
    expect_named(status, Code::remote_error, {"rank 1", "died"});
    EXPECT_FALSE(window->deregister().ok());
    EXPECT_OK(comm.abort());
  }));
}

TEST_P(WindowProcesses, name_a_peer_that_died_before_it_deregisters) {
  expect_only_rank_1_was_killed(run(2, [](Communicator& comm) {
    Bytes memory(100);
    auto window = Window::create(comm, memory);
    ASSERT_OK(window.status());
    if (comm.rank() == Rank{1}) ::raise(SIGKILL);
    expect_named(window->deregister(), Code::remote_error, {"rank 1", "died"});
    EXPECT_OK(comm.abort());
  }));
}

TEST_P(WindowProcesses, get_what_was_put_before_a_peer_left) {
  expect_all_passed(run(2, [](Communicator& comm) {
    Bytes memory(3000), mine(3000, 9);
    anycclWindow_t window = nullptr;
    ASSERT_EQ(anycclCommWindowRegister(comm.handle(), memory.data(), memory.size(), &window, 0),
              anycclSuccess);
    if (comm.rank() == Rank{1}) {
      ASSERT_EQ(anycclPutSignal(mine.data(), mine.size(), anycclUint8, 0, window, 0, 0, 0, 0,
                                comm.handle(), nullptr),
                anycclSuccess);
      ASSERT_OK(comm.destroy());
      return;
    }
    ASSERT_OK(wait_signal(comm, {{Rank{1}}}));
    EXPECT_TRUE(memory == mine);
    expect_named(wait_signal(comm, {{Rank{1}}}), Code::remote_error, {"rank 1", "has left"});
    EXPECT_OK(comm.abort());
  }));
}

}  // namespace
}  // namespace anyccl::test
