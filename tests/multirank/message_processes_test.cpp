// Probes and synchronous sends between processes: messages are read in the memory of others, and
// ranks die.

#include <csignal>
#include <thread>

#include "support/ranks.hpp"

namespace anyccl::test {
namespace {

Result<MessageInfo> probe_often(Communicator& comm) {
  for (;;) {
    const auto found = iprobe_message(comm, Rank{1});
    if (!found.ok()) return found.status();
    if (found->has_value()) return **found;
    std::this_thread::yield();
  }
}

TEST(ProbesOfProcesses, name_the_rank_that_died) {
  for (const bool often : {false, true}) {
    const auto outcomes = run_processes(2, [&](Communicator& comm) {
      static_cast<void>(wait(comm.barrier()));
      if (comm.rank() == Rank{1}) ::raise(SIGKILL);
      const Status status = (often ? probe_often(comm) : probe_message(comm, Rank{1})).status();
      EXPECT_EQ(status.code(), Code::remote_error) << status.message();
      EXPECT_NE(status.message().find("rank 1"), std::string::npos) << status.message();
      EXPECT_OK(comm.abort());
    });
    EXPECT_EQ(outcomes[0].exit_code, 0) << outcomes[0].output;
    EXPECT_EQ(outcomes[1].exit_code, -SIGKILL);
  }
}

/// Rank 1 sends something long that rank 0 wants only after its synchronous send.
void exchange_behind_a_long_send(Communicator& comm) {
  constexpr std::size_t kLong = 3 << 20;
  for (const std::size_t count : {1U, 3U << 20}) {
    std::vector<float> x(count, 1.0F), y(kLong, 2.0F), got_x(count), got_y(kLong);
    if (comm.rank() == Rank{0}) {
      ASSERT_OK(wait(ssend(comm, view(x), Rank{1}, {}, 1)));
      ASSERT_OK(wait(comm.recv(view(got_y), Rank{1}, {}, 2)));
      EXPECT_EQ(got_y, y);
    } else {
      auto sent = comm.send(view(y), Rank{0}, {}, 2);
      ASSERT_OK(sent.status());
      ASSERT_OK(wait(comm.recv(view(got_x), Rank{0}, {}, 1)));
      EXPECT_EQ(got_x, x);
      ASSERT_OK(sent->wait());
    }
  }
}

TEST(SynchronousOfProcesses, sends_are_answered_past_a_long_message_that_nobody_wants_yet) {
  for (const char* copy : {"staged", "cma"})
    expect_all_passed(run_processes(2, exchange_behind_a_long_send, [&](int) {
      return Environment::Variables{{"ANYCCL_SHM_COPY", copy}};
    }));
}

}  // namespace
}  // namespace anyccl::test
