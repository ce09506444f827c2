// A rank that does not come, for a while or at all.

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "planted.hpp"
#include "support/temporary_folder.hpp"

namespace anyccl::test {
namespace {

using namespace std::chrono_literals;

TEST_P(Planted, missing_call) {
  const cli::Blame blame = blamed(GetParam(), [](Communicator& comm, const SharedCounts& shared) {
    if (comm.rank() == kFaulty) return wait_for(shared, kRanks - 1);
    EXPECT_FALSE(reduce(comm).ok());
  });
  expect_as_listed(blame);
  expect_in(blame, {"operation 1, barrier, ended", "operation 2, all_reduce of 2 f32, sum, since"});
}

/// It is in no call as long as the others wait, so it hears of nothing.
TEST_P(Planted, long_computation) {
  const cli::Blame blame = blamed(GetParam(), [](Communicator& comm, const SharedCounts& shared) {
    if (comm.rank() != kFaulty) {
      EXPECT_FALSE(reduce(comm).ok());
      return;
    }
    wait_for(shared, kRanks - 1);
    ++shared->over;
    std::_Exit(testing::Test::HasFailure() ? 1 : 0);
  });
  expect_as_listed(blame);
  expect_in(blame, {"busy outside of calls"});
}

TEST_P(Planted, frozen_process) {
  expect_as_listed(blamed(GetParam(), [](Communicator& comm, const SharedCounts& shared) {
    if (comm.rank() != kFaulty) {
      while (shared->stopped == 0) std::this_thread::yield();
      EXPECT_FALSE(reduce(comm).ok());
      return;
    }
    shared->stopped = ::getpid();
    ::raise(SIGSTOP);
  }));
}

TEST_P(Planted, slow_rank) {
  const TemporaryFolder folder;
  expect_all_passed(run_processes(
      kRanks,
      [&](Communicator& comm) {
        for (int i = 0; i < 10; ++i) {
          if (comm.rank() == kFaulty) std::this_thread::sleep_for(30ms);  // to be slow is the fault
          EXPECT_OK(reduce(comm));
        }
        EXPECT_OK(
            comm.dump(folder.path() + "/anyccl-" + std::to_string(index(comm.rank())) + ".json"));
      },
      [&](int) {
        return Environment::Variables{{"ANYCCL_TRANSPORT", GetParam()}};
      }));
  const auto dumps = cli::read_dumps({folder.path()});
  ASSERT_OK(dumps.status());
  expect_as_listed(cli::find_blame(*dumps));
}

}  // namespace
}  // namespace anyccl::test
