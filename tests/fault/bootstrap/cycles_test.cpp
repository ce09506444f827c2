// Groups come and go without leaving anything behind.

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "strangers.hpp"

namespace anyccl {
namespace {

using namespace test;

std::ptrdiff_t entries_of(const char* folder) {
  const std::filesystem::directory_iterator entries(folder);
  return std::distance(begin(entries), end(entries));
}

/// Forms a group, or, every third time, stops waiting for one whose ranks do not all come.
void run_cycle(int cycle) {
  const Result<Rendezvous> meeting = make_rendezvous("");
  ASSERT_OK(meeting.status());
  const bool fails = cycle % 3 == 2;
  const UniqueFd silent = connect_to({"", meeting->id.used()[0]});
  in_threads(fails ? 1 : 3, [&](int rank) {
    const Deadline deadline = fails ? Deadline::in(std::chrono::milliseconds(10)) : soon();
    const Member member = make_member(rank, 3);
    EXPECT_EQ(join_and_connect(meeting->id, member, cycle % 2 == 0, deadline).ok(), !fails);
  });
}

TEST(Cycles, leave_no_descriptor_and_no_thread) {
  run_cycle(0);
  const std::ptrdiff_t descriptors = entries_of("/proc/self/fd");
  const std::ptrdiff_t threads = entries_of("/proc/self/task");
  for (int cycle = 1; cycle <= 200; ++cycle) run_cycle(cycle);
  EXPECT_EQ(entries_of("/proc/self/fd"), descriptors);
  // A thread that was joined may stay in the list for a moment.
  for (int i = 0; i < 200 && entries_of("/proc/self/task") > threads; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(entries_of("/proc/self/task"), threads);
}

}  // namespace
}  // namespace anyccl
