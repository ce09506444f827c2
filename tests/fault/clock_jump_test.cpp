// The clock of the day jumps by an hour at each look at it, forwards and back, as where somebody
// sets it: limits are neither over at once nor late, and nothing hangs.

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <thread>

#include "support/add_up.hpp"

namespace {
std::atomic<int> looks{0};
}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const auto result = static_cast<int>(::syscall(SYS_clock_gettime, clock, time));
  if (result == 0 && clock == CLOCK_REALTIME) time->tv_sec += ++looks % 2 == 0 ? 3600 : -3600;
  return result;
}

namespace anyccl::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

class ClockJump : public testing::TestWithParam<const char*> {};

TEST_P(ClockJump, changes_no_limit) {
  const auto outcomes = run_processes(
      3,
      [](Communicator& comm) {
        const auto before = std::chrono::system_clock::now();
        EXPECT_GT(std::chrono::abs(std::chrono::system_clock::now() - before), 1h) << "no jump";
        ASSERT_OK(add_up(comm, 20));
        // Absent for longer than the limit of the others; who leaves earlier is named for that.
        if (comm.rank() == Rank{2}) return std::this_thread::sleep_for(3s);
        const auto begin = Clock::now();
        const Status status = wait(comm.barrier());
        EXPECT_FALSE(status.ok());
        EXPECT_NE(status.message().find("timeout after 1000 ms"), std::string::npos)
            << status.message();
        EXPECT_GE(Clock::now() - begin, 1s);
        EXPECT_LE(Clock::now() - begin, 60s);
      },
      [](int) {
        return Environment::Variables{{"ANYCCL_TRANSPORT", GetParam()}, {"ANYCCL_OP_TIMEOUT", "1"}};
      },
      120);
  expect_all_passed(outcomes);
}
INSTANTIATE_TEST_SUITE_P(All, ClockJump, testing::Values("shm", "tcp"),
                         [](const auto& transport) { return std::string(transport.param); });

}  // namespace
}  // namespace anyccl::test
