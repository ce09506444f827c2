// Finalizing with a time limit: what peers may still need ends with an error on all ranks, and a
// receive that nobody answers only here.

#include "support/ranks.hpp"

namespace anyccl::test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kLarge = 1 << 20;

TEST(FinalizeLimit, is_not_used_up_when_nothing_is_open) {
  run_ranks(2, [](Communicator& comm) {
    std::vector<float> x{1};
    ASSERT_OK(comm.all_reduce(view(x), view(x), ReduceOp::sum).status());
    ASSERT_OK(comm.finalize(60s));
  });
}

TEST(FinalizeLimit, of_a_receive_that_never_ends_lets_the_others_go_on) {
  run_ranks(2, [](Communicator& comm) {
    std::vector<float> x{1}, never{2};
    if (comm.rank() == Rank{0}) {
      auto receive = comm.recv(never, Rank{1});
      ASSERT_OK(wait(comm.all_reduce(view(x), view(x), ReduceOp::sum)));
      EXPECT_EQ(comm.finalize(50ms).code(), Code::timeout);
      EXPECT_EQ(wait(std::move(receive)).code(), Code::timeout);
    } else {
      ASSERT_OK(wait(comm.all_reduce(view(x), view(x), ReduceOp::sum)));
      const Status gone = wait(comm.all_reduce(view(x), view(x), ReduceOp::sum));
      EXPECT_NE(gone.message().find("has left the communicator"), std::string::npos)
          << gone.message();
    }
  });
}

TEST(FinalizeLimit, of_a_send_or_a_collective_ends_it_for_all) {
  for (const bool sends : {true, false}) {
    run_ranks(2, [&](Communicator& comm) {
      std::vector<float> x(kLarge);
      if (comm.rank() == Rank{0}) {
        auto work =
            sends ? comm.send(x, Rank{1}) : comm.all_reduce(view(x), view(x), ReduceOp::sum);
        EXPECT_EQ(comm.finalize(50ms).code(), Code::timeout);
        EXPECT_EQ(wait(std::move(work)).code(), Code::timeout);
      } else {
        std::vector<float> never(1);  // a receive would keep the message of the send
        const Status told = wait(sends ? comm.all_reduce(view(never), view(never), ReduceOp::sum)
                                       : comm.recv(never, Rank{0}));
        EXPECT_EQ(told.code(), Code::timeout) << told.message();
        for (const char* words : {"finalized", "rank 0", sends ? "send" : "all_reduce"})
          EXPECT_NE(told.message().find(words), std::string::npos) << told.message();
      }
    });
  }
}

}  // namespace
}  // namespace anyccl::test
