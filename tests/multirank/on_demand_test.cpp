// Ranks of a large group connect when they first need to: which pairs do, and what each may expect
// of the others. ANYCCL_CONNECT_ALL=0 makes every group a large one.

#include <dirent.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "support/ranks.hpp"

namespace anyccl::test {
namespace {

Environment::Variables on_demand(int) {
  return {{"ANYCCL_TRANSPORT", "tcp"}, {"ANYCCL_CONNECT_ALL", "0"}};
}

/// TCP connections that this process has.
int connections() {
  int count = 0;
  DIR* const folder = ::opendir("/proc/self/fd");
  while (const dirent* const entry = ::readdir(folder)) {
    sockaddr_storage peer{};
    socklen_t size = sizeof peer;
    const int fd = std::atoi(entry->d_name);
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) == 0)
      count += peer.ss_family == AF_INET || peer.ss_family == AF_INET6 ? 1 : 0;
  }
  ::closedir(folder);
  return count;
}

void expect_sum(Communicator& comm, std::size_t count = 1) {
  std::vector<float> x(count, static_cast<float>(index(comm.rank()) + 1));
  ASSERT_OK(wait(comm.all_reduce(view(x), view(x), ReduceOp::sum)));
  const auto n = static_cast<float>(comm.size());
  EXPECT_EQ(x[0], n * (n + 1) / 2);
  EXPECT_EQ(x[count - 1], n * (n + 1) / 2);
}

void send(Communicator& comm, int to, int number) {
  std::vector<int> x{number};
  ASSERT_OK(wait(comm.send(view(x), Rank{to})));
}

void expect_message(Communicator& comm, int from, int number) {
  std::vector<int> x{0};
  ASSERT_OK(wait(comm.recv(view(x), Rank{from})));
  EXPECT_EQ(x[0], number);
}

/// Passes a token from rank to rank: when it has come round, all have been here.
void pass_round(Communicator& comm) {
  const int me = index(comm.rank()), n = comm.size();
  if (me > 0) expect_message(comm, me - 1, 7);
  send(comm, (me + 1) % n, 7);
  if (me == 0) expect_message(comm, n - 1, 7);
}

TEST(OnDemandRanks, connect_only_where_they_talk) {
  expect_all_passed(run_processes(
      6,
      [](Communicator& world) {
        EXPECT_LE(connections(), 1);  // perhaps with the root server still
        pass_round(world);
        pass_round(world);
        EXPECT_LE(connections(), 2 + (world.rank() == Rank{0} ? 6 : 0));
      },
      on_demand));
}

TEST(OnDemandRanks, compute_together) {
  expect_all_passed(run_processes(
      5,
      [](Communicator& world) {
        for (const std::size_t count : {1UL, 1000UL, 300'000UL}) expect_sum(world, count);
        ASSERT_OK(wait(world.barrier()));
      },
      on_demand));
}

TEST(OnDemandRanks, share_what_is_connected_with_communicators_of_them) {
  expect_all_passed(run_processes(
      4,
      [](Communicator& world) {
        expect_sum(world);
        ASSERT_OK(wait(world.barrier()));
        std::vector<Communicator> parts;
        for (int i = 0; i < 20; ++i) {
          auto part = world.split(i % 3 == 0 ? index(world.rank()) % 2 : 0, index(world.rank()));
          ASSERT_OK(part.status());
          parts.push_back(*std::move(part));
          expect_sum(parts.back(), 100);
        }
        EXPECT_LE(connections(), 3 + (world.rank() == Rank{0} ? 4 : 0));
        parts.resize(3);  // the others leave
        ASSERT_OK(world.destroy());
        expect_sum(parts[0], 100'000);
        expect_sum(parts[2], 100'000);
      },
      on_demand));
}

TEST(OnDemandRanks, get_a_message_of_a_rank_that_has_left) {
  for (const bool upwards : {true, false})
    expect_all_passed(run_processes(
        3,
        [&](Communicator& world) {
          const int from = upwards ? 0 : 2, to = 2 - from;
          if (index(world.rank()) == from) {
            send(world, to, 42);
            ASSERT_OK(world.destroy());
          } else if (index(world.rank()) == to) {
            expect_message(world, from, 42);
          }
        },
        on_demand));
}

TEST(OnDemandRanks, name_a_rank_that_died_before_they_were_connected) {
  const auto outcomes = run_processes(
      4,
      [](Communicator& world) {
        if (world.rank() == Rank{2}) ::raise(SIGKILL);
        std::vector<int> x{0};
        const Status status = wait(world.recv(view(x), Rank{2}));
        EXPECT_EQ(status.code(), Code::remote_error);
        EXPECT_NE(status.message().find("rank 2"), std::string::npos) << status.message();
        // It may have died while they were being connected: "died" alone, or "died or has left".
        EXPECT_NE(status.message().find("died"), std::string::npos) << status.message();
      },
      on_demand);
  for (std::size_t r = 0; r < outcomes.size(); ++r)
    EXPECT_EQ(outcomes[r].exit_code, r == 2 ? -SIGKILL : 0) << outcomes[r].output;
}

TEST(OnDemandRanks, hear_of_an_abort_though_nobody_is_connected) {
  expect_all_passed(run_processes(
      12,
      [](Communicator& world) {
        if (world.rank() == Rank{11}) {
          ASSERT_OK(world.abort());
          return;
        }
        // As a watchdog asks, between calls; it need not be at once. Without an abort the test
        // times out.
        Status status;
        while ((status = world.failure()).ok())
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        EXPECT_NE(status.message().find("rank 11"), std::string::npos) << status.message();
      },
      on_demand));
}

TEST(OnDemandRanks, hear_of_an_abort_that_came_before_they_called) {
  expect_all_passed(run_processes(
      3,
      [](Communicator& world) {
        auto made = world.split(0, index(world.rank()));
        ASSERT_OK(made.status());
        Communicator part = *std::move(made);
        if (part.rank() == Rank{0}) {
          ASSERT_OK(part.abort());
          expect_sum(world);
          return;
        }
        expect_sum(world);  // rank 0 has aborted the other one, and waits here
        std::vector<int> x{0};
        const Status status = wait(part.recv(view(x), Rank{0}));
        EXPECT_FALSE(status.ok());
        EXPECT_NE(status.message().find("rank 0"), std::string::npos) << status.message();
      },
      on_demand));
}

TEST(OnDemandRanks, are_let_in_while_they_compute) {
  expect_all_passed(run_processes(
      2,
      [](Communicator& world) {
        if (world.rank() == Rank{0}) return send(world, 1, 5);
        // Rank 1 makes no call, which would tell it: its process lets rank 0 in, or the test times
        // out.
        while (connections() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        expect_message(world, 0, 5);
      },
      on_demand));
}

TEST(OnDemandRanks, are_not_kept_alive_by_a_forked_child) {
  const auto outcomes = run_processes(
      2,
      [](Communicator& world) {
        if (world.rank() == Rank{1}) {
          if (::fork() == 0) {
            close_report();
            // Whoever runs the tests reads these to their ends.
            ::close(STDOUT_FILENO), ::close(STDERR_FILENO);
            ::alarm(20);
            for (;;) ::pause();
          }
          ::raise(SIGKILL);
        }
        std::vector<int> x{0};
        const Status status = wait(world.recv(view(x), Rank{1}));
        EXPECT_EQ(status.code(), Code::remote_error) << status.message();
      },
      on_demand);
  EXPECT_EQ(outcomes[0].exit_code, 0) << outcomes[0].output;
}

}  // namespace
}  // namespace anyccl::test
