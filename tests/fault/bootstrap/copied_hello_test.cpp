// A rank that says what another process has said of itself.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/bootstrap/ranks.hpp"

namespace anyccl::bootstrap {
namespace {

using namespace test;

TEST(CopiedHello, makes_no_thread_of_this_process_of_another_one) {
  const Member ranks[] = {make_member(0, 2), make_member(1, 2)};
  const std::vector<Hello> hellos{ranks[0].hello, ranks[1].hello};
  ASSERT_TRUE(same_process(hellos[0], hellos[1]));
  const Secret secret = *Secret::random();
  const pid_t child = ::fork();
  if (child == 0) {
    const auto peers = connect_all(ranks[1].listeners, hellos, Rank{1}, secret, false, soon());
    ::_exit(peers.ok() ? 0 : 1);
  }
  const auto peers = connect_all(ranks[0].listeners, hellos, Rank{0}, secret, false, soon());
  ASSERT_OK(peers.status());
  ASSERT_TRUE(peers->front().local);
  EXPECT_FALSE(peers->front().same_process) << "addresses that it sends would be read here";
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(CopiedHello, is_no_copy_where_ranks_are_threads_of_this_process) {
  const Member ranks[] = {make_member(0, 2), make_member(1, 2)};
  const std::vector<Hello> hellos{ranks[0].hello, ranks[1].hello};
  const Secret secret = *Secret::random();
  in_threads(2, [&](int rank) {
    const auto peers =
        connect_all(ranks[rank].listeners, hellos, Rank{rank}, secret, false, soon());
    ASSERT_OK(peers.status());
    EXPECT_TRUE(peers->front().same_process);
  });
}

}  // namespace
}  // namespace anyccl::bootstrap
