// Faults that a build must find, one of each kind: ctests start these cases by name and expect that
// the program fails and says why. Sanitizers find a race, a leak, an overflow and undefined
// arithmetic; every build finds a wrong result and names the case of a crash.

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <limits>
#include <thread>
#include <vector>

#include "support/ranks.hpp"

namespace anyccl::test {
namespace {

volatile int written = 0;
void* volatile lost = nullptr;

TEST(Planted, race) {
  std::thread other([] { written = 1; });
  written = 2;
  other.join();
}

TEST(Planted, leak) {
  lost = std::malloc(100);
  ASSERT_NE(lost, nullptr);
  lost = nullptr;
}

TEST(Planted, overflow) {
  std::vector<char> bytes(8);
  volatile std::size_t behind = 8;
  bytes.data()[behind] = 1;
}

TEST(Planted, undefined) {
  volatile int most = std::numeric_limits<int>::max();
  most = most + 1;
}

TEST(Planted, wrong_result) {
  run_ranks(2, [](Communicator& comm) {
    std::vector<float> x(4, 1);
    ASSERT_OK(wait(comm.all_reduce(view(x), view(x), ReduceOp::sum)));
    EXPECT_EQ(x[0], 3);
  });
}

TEST(Planted, crash) {
  std::raise(SIGSEGV);
}

TEST(Planted, last) {}

}  // namespace
}  // namespace anyccl::test
