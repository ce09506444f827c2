// A rank that ends while others need it.

#include <unistd.h>

#include <csignal>

#include "planted.hpp"

namespace anyccl::test {
namespace {

TEST_P(Planted, death) {
  expect_as_listed(blamed(
      GetParam(),
      [](Communicator& comm, const SharedCounts&) {
        if (comm.rank() == kFaulty) ::raise(SIGKILL);
        EXPECT_FALSE(reduce(comm).ok());
      },
      true));
}

/// A child that keeps the descriptors keeps the connections of the dead rank open.
TEST_P(Planted, death_beside_a_forked_child) {
  constexpr unsigned kMostSeconds = 30;
  expect_as_listed(blamed(
      GetParam(),
      [](Communicator& comm, const SharedCounts& shared) {
        if (comm.rank() == kFaulty) {
          if (::fork() == 0) {
            close_report();
            ::alarm(kMostSeconds);  // should the others never be through
            wait_for(shared, kRanks - 1);
            std::_Exit(0);
          }
          ::raise(SIGKILL);
        }
        EXPECT_FALSE(reduce(comm).ok());
      },
      true));
}

TEST_P(Planted, early_leave) {
  expect_as_listed(blamed(GetParam(), [](Communicator& comm, const SharedCounts&) {
    if (comm.rank() == kFaulty)
      EXPECT_OK(comm.destroy());
    else
      EXPECT_FALSE(reduce(comm).ok());
  }));
}

TEST_P(Planted, abort_by_one_rank) {
  const cli::Blame blame = blamed(GetParam(), [](Communicator& comm, const SharedCounts&) {
    if (comm.rank() == kFaulty)
      EXPECT_OK(comm.abort());
    else
      EXPECT_FALSE(reduce(comm).ok());
  });
  expect_as_listed(blame);
  expect_in(blame, {"has aborted the communicator"});
}

}  // namespace
}  // namespace anyccl::test
