// A rank that dies is named by all others, at once, whatever they were doing.

#include <unistd.h>

#include <csignal>
#include <thread>

#include "support/ranks.hpp"

namespace anyccl::test {
namespace {

using Variables = std::vector<std::pair<std::string, std::string>>;

class Death : public testing::TestWithParam<std::string> {
 protected:
  std::function<Variables(int)> variables() const {
    return [transport = GetParam()](int) { return Variables{{"ANYCCL_TRANSPORT", transport}}; };
  }
};

void expect_rank_2_is_named(const Status& status) {
  EXPECT_EQ(status.code(), Code::remote_error) << status.message();
  EXPECT_NE(status.message().find("rank 2"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("died"), std::string::npos) << status.message();
}

void expect_only_rank_2_was_killed(const std::vector<Outcome>& outcomes) {
  for (std::size_t r = 0; r < outcomes.size(); ++r)
    EXPECT_EQ(outcomes[r].exit_code, r == 2 ? -SIGKILL : 0)
        << "rank " << r << ": " << outcomes[r].output;
}

/// Whoever comes out last may have failed by then; what it calls next says why.
void meet(Communicator& comm) {
  static_cast<void>(wait(comm.barrier()));
}

/// Over shared memory and unix sockets the kernel says how a process has ended.
TEST(DeathInAHost, is_told_with_what_ended_it) {
  const std::vector<std::pair<std::function<void()>, std::string>> ends{
      {[] { ::raise(SIGKILL); }, ") died (killed by signal 9, Killed) while rank "},
      {[] { ::raise(SIGTERM); }, ") died (killed by signal 15, Terminated) while rank "},
      {[] { ::_exit(3); }, ") died (exit code 3) while rank "},
      {[] { ::_exit(0); }, ") died (exit code 0) while rank "}};
  for (const char* transport : {"shm", "unix"})
    for (const auto& [end, text] : ends) {
      const auto outcomes = run_processes(
          3,
          [&end = end, &text = text](Communicator& comm) {
            std::vector<float> x(3, 1.0F);
            meet(comm);
            if (comm.rank() == Rank{2}) end();
            const Status status = wait(comm.all_reduce(view(x), view(x), ReduceOp::sum));
            EXPECT_NE(status.message().find(text), std::string::npos) << status.message();
          },
          [&](int) {
            return Variables{{"ANYCCL_TRANSPORT", transport}};
          },
          20);
      for (const std::size_t r : {0U, 1U})
        EXPECT_EQ(outcomes[r].exit_code, 0) << outcomes[r].output;
    }
}

TEST_P(Death, before_an_operation) {
  expect_only_rank_2_was_killed(run_processes(
      4,
      [](Communicator& comm) {
        meet(comm);
        if (comm.rank() == Rank{2}) ::raise(SIGKILL);
        std::vector<float> x(100000, 1.0F);
        expect_rank_2_is_named(wait(comm.all_reduce(view(x), view(x), ReduceOp::sum)));
        expect_rank_2_is_named(wait(comm.barrier()));  // it stays failed
        EXPECT_OK(comm.abort());
      },
      variables(), 20));
}

TEST_P(Death, in_the_middle_of_operations) {
  for (int round = 0; round < 5; ++round)
    expect_only_rank_2_was_killed(run_processes(
        3,
        [&](Communicator& comm) {
          std::vector<float> x(300000, 1.0F);
          Status status;
          for (int i = 0; status.ok(); ++i) {
            if (comm.rank() == Rank{2} && i == 20 + round) ::raise(SIGKILL);
            const View v{x.data(), i % 3 == 0 ? x.size() : 3, DType::f32};
            status = i % 5 == 4 ? wait(comm.broadcast(v, v, Rank{i % 3}))
                                : wait(comm.all_reduce(v, v, ReduceOp::max));
          }
          expect_rank_2_is_named(status);
        },
        variables(), 20));
}

TEST_P(Death, of_the_peer_of_a_message) {
  expect_only_rank_2_was_killed(run_processes(
      3,
      [](Communicator& comm) {
        meet(comm);
        if (comm.rank() == Rank{2}) ::raise(SIGKILL);
        std::vector<float> x(10, 1.0F);
        if (comm.rank() == Rank{0}) expect_rank_2_is_named(wait(comm.recv(view(x), Rank{2})));
        if (comm.rank() == Rank{1}) {
          std::vector<float> large(4000000, 1.0F);
          expect_rank_2_is_named(wait(comm.send(view(large), Rank{2})));
        }
      },
      variables(), 20));
}

/// No thread is left behind, whichever of them the dead rank's threads had still served.
TEST_P(Death, while_a_team_waits) {
  for (int round = 0; round < 3; ++round)
    expect_only_rank_2_was_killed(run_processes(
        3,
        [&](Communicator& comm) {
          ASSERT_OK(comm.make_parts(3));
          std::vector<float> x(100000, 1.0F);
          const auto work = [&](int thread) {
            Status status;
            for (int i = 0; status.ok(); ++i) {
              if (comm.rank() == Rank{2} && thread == round && i == 20) ::raise(SIGKILL);
              status = comm.all_reduce_part(view(x), view(x), ReduceOp::max, thread, 3);
            }
            expect_rank_2_is_named(status);
          };
          std::thread first(work, 1), second(work, 2);
          work(0);
          first.join();
          second.join();
          expect_rank_2_is_named(wait(comm.barrier()));
        },
        variables(), 20));
}

/// Helpers that a rank has forked (data loaders do that) do not keep its connections open.
TEST_P(Death, of_a_rank_with_children) {
  expect_only_rank_2_was_killed(run_processes(
      3,
      [](Communicator& comm) {
        meet(comm);
        if (comm.rank() == Rank{2}) {
          int ready[2];
          ASSERT_EQ(::pipe(ready), 0);
          if (::fork() == 0) {
            ::close(ready[0]);
            ::close(ready[1]);
            for (int fd : {0, 1, 2}) ::close(fd);
            close_report();
            ::sleep(10);  // holds on to what it inherited for longer than the others may take
            std::_Exit(0);
          }
          ::close(ready[1]);
          char none = 0;
          EXPECT_EQ(::read(ready[0], &none, 1), 0);  // the child runs
          ::raise(SIGKILL);
        }
        std::vector<float> x(100, 1.0F);
        expect_rank_2_is_named(wait(comm.all_reduce(view(x), view(x), ReduceOp::sum)));
      },
      variables(), 5));
}

/// The frame of an abort comes behind the data. A rank that does not read until its peer's process
/// has ended hears only of the end.
TEST(DeathOverTcp, may_have_been_an_abort_on_a_full_connection) {
  int aborted[2];
  ASSERT_EQ(::pipe(aborted), 0);
  const auto outcomes = run_processes(
      2,
      [&aborted](Communicator& comm) {
        meet(comm);
        std::vector<float> x(std::size_t{4} << 20, 1.0F);
        char byte = 0;
        if (comm.rank() == Rank{0}) {
          auto work = comm.all_reduce(view(x), view(x), ReduceOp::sum);
          ASSERT_OK(work.status());
          EXPECT_FALSE(*work->test());  // fills the connection
          EXPECT_OK(comm.abort());
          EXPECT_EQ(::write(aborted[1], &byte, 1), 1);
          ::_exit(testing::Test::HasFailure() ? 1 : 0);
        }
        ASSERT_EQ(::read(aborted[0], &byte, 1), 1);
        const Status status = wait(comm.all_reduce(view(x), view(x), ReduceOp::sum));
        // "died, or aborted and exited", or "aborted" where the kernel had room for all of it
        EXPECT_NE(status.message().find("aborted"), std::string::npos) << status.message();
      },
      [](int) {
        return Variables{{"ANYCCL_TRANSPORT", "tcp"}};
      },
      20);
  for (const int end : aborted) ::close(end);
  expect_all_passed(outcomes);
}

/// Who stops in the middle of a job without a word is named too.
TEST_P(Death, by_leaving_while_others_need_it) {
  const auto outcomes = run_processes(
      3,
      [](Communicator& comm) {
        meet(comm);
        if (comm.rank() == Rank{1}) return;  // destroys the communicator
        std::vector<float> x(10, 1.0F);
        const Status status = wait(comm.all_reduce(view(x), view(x), ReduceOp::sum));
        EXPECT_EQ(status.code(), Code::remote_error) << status.message();
        EXPECT_NE(status.message().find("rank 1"), std::string::npos) << status.message();
        EXPECT_NE(status.message().find("has left"), std::string::npos) << status.message();
      },
      variables(), 20);
  expect_all_passed(outcomes);
}

INSTANTIATE_TEST_SUITE_P(Transports, Death, testing::Values("shm", "unix", "tcp"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace anyccl::test
