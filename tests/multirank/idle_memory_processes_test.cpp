// Communicators give idle memory back while they are used, and by themselves, by ranks that are
// processes.

#include "multirank/idle_memory.hpp"
#include "support/effort.hpp"

namespace anyccl::test {
namespace {

TEST(IdleMemory, is_given_back_between_operations_of_processes) {
  for (const int ranks : {2, 4})
    expect_all_passed(run_processes(ranks, [](Communicator& comm) {
      reduce_while_memory_is_given_back(comm, effort(60, 200, 200));
    }));
}

/// Without a further call: the background thread looks after some seconds.
TEST(IdleMemory, is_given_back_by_communicators_that_nobody_calls) {
  expect_all_passed(run_processes(
      2,
      [](Communicator& comm) {
        CommMemory mine(*comm.handle()->comm);
        const std::size_t fresh = mine.bytes();
        std::vector<float> x(std::size_t{1} << 20, 1.0F);
        const auto reduce = [&] {
          std::fill(x.begin(), x.end(), 1.0F);
          ASSERT_OK(wait(comm.all_reduce(view(x), view(x), ReduceOp::sum)));
          EXPECT_EQ(x, std::vector<float>(x.size(), 2.0F));
        };
        reduce();
        const std::size_t used = mine.bytes();
        EXPECT_GE(used, fresh + 65536);
        const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(50);
        while (mine.bytes() + 65536 > used) {
          ASSERT_LT(std::chrono::steady_clock::now(), limit);
          // Between looks, so that the background thread finds the progress lock free.
          std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        reduce();
      },
      {}, 120));
}

}  // namespace
}  // namespace anyccl::test
