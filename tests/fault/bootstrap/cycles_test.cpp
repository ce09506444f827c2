// Groups come and go without leaving anything behind.

#include <gtest/gtest.h>

#include "support/usage.hpp"
#include "unauthenticated.hpp"

namespace anyccl::bootstrap {
namespace {

using namespace test;
using namespace anyccl::test;

/// Forms a group, or, every third time, stops waiting for one whose ranks do not all come.
void run_cycle(int cycle) {
  const Result<Rendezvous> rendezvous = make_rendezvous("");
  ASSERT_OK(rendezvous.status());
  const bool fails = cycle % 3 == 2;
  const UniqueFd silent = connect_to({"", rendezvous->id.addresses()[0]});
  in_threads(fails ? 1 : 3, [&](int rank) {
    const Deadline deadline = fails ? Deadline::in(std::chrono::milliseconds(10)) : soon();
    const Member member = make_member(rank, 3);
    EXPECT_EQ(join_and_connect(rendezvous->id, member, cycle % 2 == 0, deadline).ok(), !fails);
  });
}

TEST(Cycles, leave_no_descriptor_and_no_thread) {
  run_cycle(0);
  const std::ptrdiff_t threads_before = threads(1);  // first, as threads have descriptors
  const std::ptrdiff_t descriptors_before = entries_of("/proc/self/fd");
  for (int cycle = 1; cycle <= 200; ++cycle) run_cycle(cycle);
  EXPECT_EQ(threads(threads_before), threads_before);
  EXPECT_LE(descriptors(descriptors_before), descriptors_before);
}

}  // namespace
}  // namespace anyccl::bootstrap
