// Ranks that call communicators in another order.

#include <array>

#include "planted.hpp"

namespace anyccl::test {
namespace {

Result<Communicator> split(Communicator& comm, const char* name, int color = 0) {
  CommunicatorConfig config;
  config.name = name;
  config.fields.timeoutMs = 3000;  // until then all have called, also on a busy machine
  return comm.split(color, index(comm.rank()), config);
}

/// Nobody leaves a communicator before all are through, as that would tell the others.
void leave_together(const SharedCounts& shared, std::initializer_list<Communicator*> comms) {
  ++shared->over;
  wait_for(shared, kRanks);
  for (Communicator* comm : comms) static_cast<void>(comm->abort());
}

TEST_P(Planted, order_of_two_communicators) {
  const cli::Blame blame = blamed(GetParam(), [](Communicator& comm, const SharedCounts& shared) {
    auto dp = split(comm, "dp"), tp = split(comm, "tp");
    ASSERT_OK(dp.status());
    ASSERT_OK(tp.status());
    std::vector<float> x(2, 1.0F);
    const Status status =
        comm.rank() == kFaulty ? wait(tp->broadcast(view(x), view(x), Rank{0})) : reduce(*dp);
    EXPECT_FALSE(status.ok());
    if (comm.rank() == Rank{0}) {
      EXPECT_NE(
          status.message().find("and has called operation 1, broadcast of 2 f32 from rank 0, of "
                                "communicator tp of 3 ranks, which this rank has not"),
          std::string::npos)
          << status.message();
    }
    leave_together(shared, {&*dp, &*tp});
  });
  expect_as_listed(blame);
  expect_in(blame, {"communicator dp, all_reduce of 2 f32", "communicator tp, broadcast of 2"});
}

/// Each rank is in two of three pairs, and calls the one that its partner there calls last.
TEST_P(Planted, three_crossed_groups) {
  const cli::Blame blame = blamed(GetParam(), [](Communicator& comm, const SharedCounts& shared) {
    const int me = index(comm.rank());
    std::vector<Communicator> mine(2);  // with the next rank, and with the one before
    for (int first = 0; first < kRanks; ++first) {
      const std::array pair{first, (first + 1) % kRanks};
      const bool is_in = me == pair[0] || me == pair[1];
      auto made =
          split(comm, ("pair" + std::to_string(first)).c_str(), is_in ? 0 : ANYCCL_SPLIT_NOCOLOR);
      ASSERT_OK(made.status());
      if (is_in) mine[me == first ? 0 : 1] = *std::move(made);
    }
    EXPECT_FALSE(reduce(mine[0]).ok());
    leave_together(shared, {&mine[0], &mine[1]});
  });
  expect_as_listed(blame);
  expect_in(blame, {"communicator pair0", "communicator pair1", "communicator pair2"});
}

}  // namespace
}  // namespace anyccl::test
