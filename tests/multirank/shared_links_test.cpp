// Communicators that descend from one another share connections: what each may expect of the rest.

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <thread>

#include "support/meet_again.hpp"

namespace anyccl::test {
namespace {

struct SharedLinks : testing::TestWithParam<std::string> {
  static auto transport() {
    const std::string name = GetParam();
    return [name](int) { return Environment::Variables{{"ANYCCL_TRANSPORT", name}}; };
  }
};
INSTANTIATE_TEST_SUITE_P(transports, SharedLinks, testing::Values("shm", "unix", "tcp"),
                         [](const auto& tested) { return tested.param; });

/// Those that this process has open.
int descriptors() {
  int count = 0;
  DIR* const folder = ::opendir("/proc/self/fd");
  while (::readdir(folder) != nullptr) ++count;
  ::closedir(folder);
  return count;
}

/// Of shared memory in this process.
int shared_mappings() {
  int count = 0;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find("memfd:anyccl") != std::string::npos) ++count;
  return count;
}

void expect_sum(Communicator& comm, std::size_t count) {
  std::vector<float> x(count, static_cast<float>(index(comm.rank()) + 1));
  ASSERT_OK(wait(comm.all_reduce(view(x), view(x), ReduceOp::sum)));
  const auto n = static_cast<float>(comm.size());
  EXPECT_EQ(x[0], n * (n + 1) / 2);
  EXPECT_EQ(x[count - 1], n * (n + 1) / 2);
}

Communicator copy_of(Communicator& comm) {
  auto made = comm.split(0, index(comm.rank()));
  EXPECT_TRUE(made.ok()) << made.status().message();
  return std::move(*made);
}

TEST_P(SharedLinks, make_communicators_without_descriptors_and_mappings) {
  expect_all_passed(run_processes(
      3,
      [](Communicator& world) {
        expect_sum(world, 100'000);
        std::vector<Communicator> parts;
        parts.push_back(copy_of(world));
        expect_sum(parts.back(), 100'000);
        const int before = descriptors(), mapped = shared_mappings();
        for (int i = 0; i < 50; ++i) {
          parts.push_back(copy_of(i % 2 == 0 ? world : parts.back()));
          expect_sum(parts.back(), i == 0 ? 100'000 : 10);
        }
        EXPECT_LE(descriptors(), before + 1);  // a thread that sleeps may need one
        EXPECT_EQ(shared_mappings(), mapped);
        for (Communicator& part : parts) ASSERT_OK(part.destroy());
        expect_sum(world, 10);
      },
      transport()));
}

TEST_P(SharedLinks, are_used_again_by_processes_that_meet_again) {
  expect_all_passed(run_processes(
      3,
      [](Communicator& world) {
        std::vector<Communicator> all;
        all.push_back(meet_again(world));
        expect_sum(all.back(), 100'000);
        ASSERT_OK(wait(world.barrier()));  // rank 0 has no server of a group any more
        const int before = descriptors();
        const int mapped = shared_mappings();
        for (int i = 0; i < 10; ++i) {
          all.push_back(meet_again(world));
          expect_sum(all.back(), 100'000);
        }
        ASSERT_OK(wait(world.barrier()));
        EXPECT_LE(descriptors(), before + 1);  // a thread that sleeps may need one
        EXPECT_EQ(shared_mappings(), mapped);
        ASSERT_OK(world.destroy());
        expect_sum(all.back(), 100'000);
      },
      transport()));
}

TEST_P(SharedLinks, do_not_let_a_blocked_communicator_stop_another) {
  expect_all_passed(run_processes(
      2,
      [](Communicator& world) {
        Communicator blocked = copy_of(world), free = copy_of(world);
        std::vector<float> much(16 << 20, 1.0F);  // 64 MiB, more than is kept for anybody
        if (world.rank() == Rank{1}) {  // sends nothing until the other communicator is done
          for (int i = 0; i < 20; ++i) expect_sum(free, 50'000);
          ASSERT_OK(wait(blocked.recv(view(much), Rank{0})));
          return;
        }
        std::thread sender([&] { EXPECT_OK(wait(blocked.send(view(much), Rank{1}))); });
        for (int i = 0; i < 20; ++i) expect_sum(free, 50'000);
        sender.join();
      },
      transport()));
}

TEST_P(SharedLinks, outlive_the_communicator_that_made_them) {
  expect_all_passed(run_processes(
      3,
      [](Communicator& world) {
        Communicator part = copy_of(world);
        ASSERT_OK(world.destroy());
        expect_sum(part, 100'000);
        Communicator next = copy_of(part);
        ASSERT_OK(part.destroy());
        expect_sum(next, 100'000);
      },
      transport()));
}

TEST_P(SharedLinks, end_one_communicator_and_not_the_others) {
  expect_all_passed(run_processes(
      2,
      [](Communicator& world) {
        Communicator aborted = copy_of(world), left = copy_of(world), good = copy_of(world);
        if (world.rank() == Rank{0}) {
          EXPECT_OK(aborted.abort());
          EXPECT_OK(left.destroy());
        } else {
          EXPECT_NE(wait(aborted.barrier()).message().find("rank 0"), std::string::npos);
          EXPECT_NE(wait(left.barrier()).message().find("rank 0"), std::string::npos);
        }
        expect_sum(good, 100'000);
        expect_sum(world, 100'000);
      },
      transport()));
}

TEST_P(SharedLinks, tell_every_communicator_of_a_death) {
  const auto outcomes = run_processes(
      3,
      [](Communicator& world) {
        std::vector<Communicator> parts;
        for (int i = 0; i < 4; ++i) parts.push_back(copy_of(world));
        if (world.rank() == Rank{1}) ::raise(SIGKILL);
        for (Communicator& part : parts) {
          const Status status = wait(part.barrier());
          EXPECT_EQ(status.code(), Code::remote_error);
          EXPECT_NE(status.message().find("rank 1"), std::string::npos) << status.message();
          EXPECT_OK(part.abort());
        }
        EXPECT_OK(world.abort());
      },
      transport());
  for (std::size_t r = 0; r < outcomes.size(); ++r)
    EXPECT_EQ(outcomes[r].exit_code, r == 1 ? -SIGKILL : 0) << r << ": " << outcomes[r].output;
}

/// Ranks with peers by shared memory and by TCP sleep on the sockets of both. A rank that is not
/// woken sleeps for up to a second, and all of these together would take too long.
TEST(SharedLinksOfTwoKinds, wake_a_rank_whichever_peer_is_late) {
  const auto hosts = [](int rank) {
    return Environment::Variables{{"ANYCCL_HOSTID", rank < 2 ? "a" : "b"},
                                  {"ANYCCL_WAIT", "thrift"}};
  };
  expect_all_passed(run_processes(
      4,
      [](Communicator& world) {
        for (int i = 0; i < 60; ++i) {
          if (index(world.rank()) == i % 4)  // late: the others sleep by then
            std::this_thread::sleep_for(std::chrono::milliseconds(3));
          expect_sum(world, i % 3 == 0 ? 1 : 30'000);
        }
      },
      hosts, 30));
}

// Not under UBSan, which comes with ASan here: to look whether an object is one it opens a pipe,
// and says that it is none where it cannot.
#if !defined(__SANITIZE_ADDRESS__)
TEST(SharedLinksOverSockets, make_communicators_where_no_descriptor_is_left) {
  const auto variables = [](int) { return Environment::Variables{{"ANYCCL_TRANSPORT", "tcp"}}; };
  expect_all_passed(run_processes(
      3,
      [](Communicator& world) {
        const int first = ::open("/dev/null", O_RDONLY);
        ::close(first);
        rlimit limit{};
        ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
        limit.rlim_cur = static_cast<rlim_t>(first);
        ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
        for (int i = 0; i < 5; ++i) {
          Communicator part = copy_of(world);
          expect_sum(part, 100'000);
          ASSERT_OK(part.destroy());
        }
      },
      variables));
}

#endif

}  // namespace
}  // namespace anyccl::test
