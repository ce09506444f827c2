// Two ranks die at the same time while all make rooted calls: the others name one of them. It
// prints how long they need.

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <new>
#include <thread>

#include "support/ranks.hpp"

namespace anyccl::test {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kRanks = 8, kCallsBefore = 20;
constexpr bool is_victim(int rank) {
  return rank == 3 || rank == 6;
}

/// What the processes share.
struct Times {
  std::atomic<int> at_the_end{0};  // victims that have come there
  std::array<Clock::time_point, kRanks> ended{};
};

struct Rooted {
  const char* name;
  Status (*call)(Communicator&, View whole, View block, View other);
};

const Rooted kRooted[] = {
    {"gather",
     [](auto& c, View whole, View block, View) { return wait(c.gather(block, whole, Rank{0})); }},
    {"reduce", [](auto& c, View whole, View,
                  View other) { return wait(c.reduce(whole, other, ReduceOp::sum, Rank{0})); }},
    {"scatter",
     [](auto& c, View whole, View block, View) { return wait(c.scatter(whole, block, Rank{0})); }},
    {"broadcast",
     [](auto& c, View whole, View, View) { return wait(c.broadcast(whole, whole, Rank{0})); }},
};

void run_rank(Communicator& comm, const Rooted& rooted, std::size_t elements, Times& times) {
  const int me = index(comm.rank());
  std::vector<float> whole(kRanks * elements, 1.0F), other(whole), block(elements);
  Status status = wait(comm.barrier());
  for (int i = 0; status.ok(); ++i) {
    if (is_victim(me) && i == kCallsBefore) {
      ++times.at_the_end;
      while (times.at_the_end < 2) std::this_thread::yield();
      times.ended[static_cast<std::size_t>(me)] = Clock::now();
      ::raise(SIGKILL);
    }
    status = rooted.call(comm, view(whole), view(block), view(other));
  }
  times.ended[static_cast<std::size_t>(me)] = Clock::now();
  EXPECT_EQ(status.code(), Code::remote_error) << status.message();
  const auto names = [&](const char* text) {
    return status.message().find(text) != std::string::npos;
  };
  EXPECT_TRUE((names("rank 3") || names("rank 6")) && names("died")) << status.message();
}

class TwoVictims : public testing::TestWithParam<std::tuple<int, std::string, std::size_t>> {};

TEST_P(TwoVictims, are_named_by_all_others) {
  const auto& [which, transport, elements] = GetParam();
  void* shared =
      ::mmap(nullptr, sizeof(Times), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  Times& times = *new (shared) Times;
  const auto outcomes = run_processes(
      kRanks,
      [&, which = which, elements = elements](Communicator& comm) {
        run_rank(comm, kRooted[which], elements, times);
      },
      [transport = transport](int) {
        return std::vector<std::pair<std::string, std::string>>{{"ANYCCL_TRANSPORT", transport}};
      },
      20);
  Clock::time_point died, known;
  for (int r = 0; r < kRanks; ++r) {
    const auto& outcome = outcomes[static_cast<std::size_t>(r)];
    EXPECT_EQ(outcome.exit_code, is_victim(r) ? -SIGKILL : 0)
        << "rank " << r << ": " << outcome.output;
    Clock::time_point& last = is_victim(r) ? died : known;
    last = std::max(last, times.ended[static_cast<std::size_t>(r)]);
  }
  std::printf("the last rank knows after %.1f ms\n",
              std::chrono::duration<double, std::milli>(known - died).count());
  ::munmap(shared, sizeof(Times));
}
INSTANTIATE_TEST_SUITE_P(All, TwoVictims,
                         testing::Combine(testing::Range(0, 4), testing::Values("shm", "tcp"),
                                          testing::Values(std::size_t{1}, std::size_t{30000})),
                         [](const auto& test) {
                           return std::string(kRooted[std::get<0>(test.param)].name) + "_over_" +
                                  std::get<1>(test.param) + "_of_" +
                                  std::to_string(std::get<2>(test.param));
                         });

}  // namespace
}  // namespace anyccl::test
