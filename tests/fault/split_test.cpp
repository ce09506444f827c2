// A rank that fails in the middle of a split leaves nobody waiting for it.

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <thread>

#include "support/ranks.hpp"

namespace anyccl::test {
namespace {

class Split : public testing::TestWithParam<std::string> {
 protected:
  std::function<Environment::Variables(int)> variables() const {
    return [transport = GetParam()](int) {
      return Environment::Variables{{"ANYCCL_TRANSPORT", transport}};
    };
  }
};

bool names(const Status& status, const std::string& rank) {
  return status.message().find(rank) != std::string::npos;
}

// Not under UBSan, which comes with ASan here: to look whether an object is one it opens a pipe,
// and says that it is none where it cannot.
#if !defined(__SANITIZE_ADDRESS__)
int first_free_descriptor() {
  const int fd = ::open("/dev/null", O_RDONLY);
  EXPECT_GE(fd, 0);
  ::close(fd);
  return fd;
}

void allow_descriptors_below(int end) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = static_cast<rlim_t>(end);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/// With room for some of the memory that it shows, or has to map, it drops out while the others
/// wait for it. Over sockets a split needs no descriptors.
TEST(SplitOverSharedMemory, ends_for_all_where_one_runs_out_of_descriptors) {
  // With so large a ring each communicator has files of its own.
  const auto variables = [](int) {
    return Environment::Variables{{"ANYCCL_TRANSPORT", "shm"}, {"ANYCCL_BUFFSIZE", "64M"}};
  };
  for (const int poor : {0, 2}) {
    const std::string name = "rank " + std::to_string(poor);
    const auto outcomes = run_processes(
        3,
        [&](Communicator& comm) {
          const bool is_poor = comm.rank() == Rank{poor};
          const int first = first_free_descriptor();
          bool usable = true;
          for (int more = 0; usable && more < 20; ++more) {
            if (is_poor) allow_descriptors_below(first + more);
            const Status split = comm.split(0, index(comm.rank())).status();
            EXPECT_FALSE(split.ok());
            EXPECT_TRUE(is_poor || names(split, name)) << split.message();
            usable = wait(comm.barrier()).ok();
          }
          EXPECT_FALSE(usable);
          EXPECT_TRUE(names(wait(comm.barrier()), name));
          EXPECT_OK(comm.abort());
        },
        variables, 20);
    expect_all_passed(outcomes);
  }
}

#endif

TEST_P(Split, ends_for_all_where_one_dies_or_aborts) {
  for (int round = 0; round < 20 && !HasFailure(); ++round) {
    const bool dies = round % 2 == 0;
    const auto outcomes = run_processes(
        3,
        [&](Communicator& comm) {
          Status status = wait(comm.barrier());  // so that all split; some may end in it yet
          const bool ends = comm.rank() == Rank{2};
          std::thread end([&] {
            if (!ends) return;
            // So that each round ends at another place of a split; any place will do.
            std::this_thread::sleep_for(std::chrono::microseconds(150 * round));
            if (dies) ::raise(SIGKILL);
            EXPECT_OK(comm.abort());
          });
          while (status.ok()) status = comm.split(0, index(comm.rank())).status();
          EXPECT_TRUE(ends || names(status, "rank 2")) << status.message();
          end.join();
          EXPECT_OK(comm.abort());
        },
        variables(), 20);
    for (std::size_t r = 0; r < outcomes.size(); ++r)
      EXPECT_EQ(outcomes[r].exit_code, r == 2 && dies ? -SIGKILL : 0)
          << "rank " << r << ": " << outcomes[r].output;
  }
}

INSTANTIATE_TEST_SUITE_P(transports, Split, testing::Values("shm", "tcp"),
                         [](const auto& tested) { return tested.param; });

}  // namespace
}  // namespace anyccl::test
