// Messages that nobody takes or sends.

#include "planted.hpp"

namespace anyccl::test {
namespace {

/// More than sockets hold: no send of it ends without its receiver.
constexpr std::size_t kLong = std::size_t{8} << 20;

TEST_P(Planted, send_without_receive) {
  const cli::Blame blame = blamed(GetParam(), [](Communicator& comm, const SharedCounts& shared) {
    if (comm.rank() != Rank{0}) return wait_for(shared, 1);
    std::vector<float> x(kLong, 1.0F);
    EXPECT_FALSE(wait(comm.send(view(x), kFaulty, {}, 7)).ok());
  });
  expect_as_listed(blame);
  expect_in(blame, {"send of 8388608 f32 to rank 2, tag 7"});
}

TEST_P(Planted, receive_without_send) {
  const cli::Blame blame = blamed(GetParam(), [](Communicator& comm, const SharedCounts& shared) {
    if (comm.rank() != Rank{0}) return wait_for(shared, 1);
    std::vector<float> x(4, 1.0F);
    EXPECT_FALSE(wait(comm.recv(view(x), kFaulty, {}, 7)).ok());
  });
  expect_as_listed(blame);
  expect_in(blame, {"recv of 4 f32 from rank 2, tag 7"});
}

TEST_P(Planted, cycle_of_sends) {
  const cli::Blame blame = blamed(GetParam(), [](Communicator& comm, const SharedCounts&) {
    std::vector<float> x(kLong, 1.0F);
    EXPECT_FALSE(wait(comm.send(view(x), Rank{(index(comm.rank()) + 1) % kRanks})).ok());
  });
  expect_as_listed(blame);
  expect_in(blame, {"rank 0 of communicator", "send of 8388608 f32 to rank 1"});
}

}  // namespace
}  // namespace anyccl::test
