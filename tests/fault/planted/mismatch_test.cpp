// A rank that calls something else than the others.

#include "planted.hpp"

namespace anyccl::test {
namespace {

/// The ranks make these calls; the last of the others waits for the rank that makes another one.
cli::Blame blamed_for(const char* transport, const std::function<void(Communicator&)>& faulty,
                      const std::function<void(Communicator&)>& others) {
  return blamed(transport, [&](Communicator& comm, const SharedCounts&) {
    (comm.rank() == kFaulty ? faulty : others)(comm);
    EXPECT_FALSE(wait(comm.barrier()).ok());  // a root may have been through before
  });
}

void reduce_floats(Communicator& comm) {
  static_cast<void>(reduce(comm));
}

TEST_P(Planted, left_out_call) {
  const cli::Blame blame = blamed(GetParam(), [](Communicator& comm, const SharedCounts&) {
    std::vector<float> x(2, 1.0F);
    if (comm.rank() != kFaulty) static_cast<void>(wait(comm.broadcast(view(x), view(x), Rank{0})));
    EXPECT_FALSE(reduce(comm).ok());
  });
  expect_as_listed(blame);
  expect_in(blame, {"rank 2 called all_reduce of 2 f32", "called broadcast of 2 f32"});
}

TEST_P(Planted, other_collective) {
  const cli::Blame blame = blamed_for(
      GetParam(), [](Communicator& comm) { static_cast<void>(wait(comm.barrier())); },
      reduce_floats);
  expect_as_listed(blame);
  expect_in(blame, {"rank 2 called barrier"});
}

TEST_P(Planted, wrong_root) {
  const auto broadcast_from = [](Rank root) {
    return [root](Communicator& comm) {
      std::vector<float> x(2, 1.0F);
      static_cast<void>(wait(comm.broadcast(view(x), view(x), root)));
    };
  };
  const cli::Blame blame = blamed_for(GetParam(), broadcast_from(kFaulty), broadcast_from(Rank{0}));
  expect_as_listed(blame);
  expect_in(blame, {"rank 2 called broadcast of 2 f32, root 2"});
}

TEST_P(Planted, wrong_size) {
  expect_as_listed(blamed_for(
      GetParam(), [](Communicator& comm) { static_cast<void>(reduce(comm, 3)); }, reduce_floats));
}

TEST_P(Planted, wrong_type) {
  const cli::Blame blame = blamed_for(
      GetParam(),
      [](Communicator& comm) {
        std::vector<std::int32_t> x(2, 1);
        static_cast<void>(wait(comm.all_reduce(view(x), view(x), ReduceOp::sum)));
      },
      reduce_floats);
  expect_as_listed(blame);
  expect_in(blame, {"rank 2 called all_reduce of 2 i32"});
}

TEST_P(Planted, wrong_operator) {
  const cli::Blame blame = blamed_for(
      GetParam(), [](Communicator& comm) { static_cast<void>(reduce(comm, 2, ReduceOp::max)); },
      reduce_floats);
  expect_as_listed(blame);
  expect_in(blame, {"rank 2 called all_reduce of 2 f32, max"});
}

}  // namespace
}  // namespace anyccl::test
