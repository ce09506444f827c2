// Operations in streams whose peers or communicators fail.

#include "support/streams.hpp"

namespace anyccl::test {
namespace {

constexpr auto kSum = ReduceOp::sum;

TEST(StreamFailure, a_peer_that_is_gone_is_named_and_nothing_hangs) {
  run_ranks(3, [](Communicator& comm) {
    if (comm.rank() == Rank{2}) return static_cast<void>(comm.destroy());
    Stream stream = new_stream();
    std::vector<float> x(1000, 1.0F);
    bool ran = false;
    Status last = comm.all_reduce(view(x), view(x), kSum, stream).status();
    ASSERT_OK(last);
    for (int i = 0; i < 5 && last.ok(); ++i)  // refused as soon as it is known
      last = comm.barrier(stream).status();
    ASSERT_OK(stream.run([&] { ran = true; }));
    const Status status = stream.synchronize();
    EXPECT_EQ(status.code(), Code::remote_error) << status.message();
    EXPECT_NE(status.message().find("rank 2"), std::string::npos) << status.message();
    EXPECT_TRUE(ran);
    EXPECT_EQ(stream.query().status().message(), status.message());
    EXPECT_EQ(comm.failure().message(), status.message());
    EXPECT_EQ(comm.barrier(stream).status().message(), status.message());
  });
}

TEST(StreamFailure, a_failed_communicator_does_not_stop_others_in_the_stream) {
  run_ranks(2, [](Communicator& comm) {
    auto made = comm.split(0, index(comm.rank()));
    ASSERT_TRUE(made.ok()) << made.status().message();
    Stream stream = new_stream();
    std::vector<float> x(10, 1.0F), y(10, 1.0F);
    if (comm.rank() == Rank{1}) {
      ASSERT_OK(made->abort());
    } else {
      ASSERT_OK(made->all_reduce(view(x), view(x), kSum, stream).status());
    }
    ASSERT_OK(comm.all_reduce(view(y), view(y), kSum, stream).status());
    EXPECT_EQ(stream.synchronize().ok(), comm.rank() == Rank{1});
    EXPECT_EQ(y[9], 2.0F);
  });
}

TEST(StreamFailure, abort_ends_what_waits_for_its_stream) {
  run_ranks(2, [](Communicator& comm) {
    Stream busy = new_stream(), other = new_stream();
    Door door;
    std::vector<float> x(10, 1.0F), y(10, 1.0F);
    ASSERT_OK(busy.run([&] { EXPECT_TRUE(door.pass()); }));
    auto first = comm.all_reduce(view(x), view(x), kSum, busy);
    auto second = comm.all_reduce(view(y), view(y), kSum, other);
    ASSERT_TRUE(first.ok() && second.ok());
    ASSERT_OK(comm.abort());
    EXPECT_EQ(first->wait().code(), Code::aborted);
    EXPECT_EQ(second->wait().code(), Code::aborted);
    EXPECT_EQ(other.synchronize().code(), Code::aborted);
    EXPECT_EQ(x[0], 1.0F);  // it never began
    door.open();
    EXPECT_EQ(busy.synchronize().code(), Code::aborted);
  });
}

TEST(StreamFailure, an_abort_by_a_peer_is_seen_behind_a_closed_gate) {
  run_ranks(2, [](Communicator& comm) {
    if (comm.rank() == Rank{1}) return static_cast<void>(comm.abort());
    Stream busy = new_stream(), other = new_stream();
    Door door;
    std::vector<float> x(10, 1.0F), y(10, 1.0F);
    ASSERT_OK(busy.run([&] { EXPECT_TRUE(door.pass()); }));
    const Status first = comm.all_reduce(view(x), view(x), kSum, busy).status();
    const Status second = comm.all_reduce(view(y), view(y), kSum, other).status();
    const Status seen = !first.ok() ? first : !second.ok() ? second : other.synchronize();
    EXPECT_EQ(seen.code(), Code::aborted) << seen.message();
    EXPECT_EQ(comm.failure().code(), Code::aborted);
    door.open();
    static_cast<void>(busy.synchronize());
  });
}

TEST(StreamFailure, what_a_peer_sent_before_it_left_waits_for_the_stream) {
  Door left;
  run_ranks(2, [&](Communicator& comm) {
    float x = 1.0F, y = 0.0F, early = -1.0F;
    if (comm.rank() == Rank{1}) {
      ASSERT_OK(wait(comm.send({&x, 1, DType::f32}, Rank{0})));
      ASSERT_OK(comm.destroy());
      return left.open();
    }
    Stream stream = new_stream();
    Door door;
    ASSERT_OK(stream.run([&] {
      EXPECT_TRUE(door.pass());
      early = y;
    }));
    ASSERT_OK(comm.recv({&y, 1, DType::f32}, Rank{1}, stream).status());
    ASSERT_TRUE(left.pass());
    for (int i = 0; i < 10; ++i) ASSERT_OK(comm.failure());  // looks for trouble
    door.open();
    ASSERT_OK(stream.synchronize());
    EXPECT_EQ(early, 0.0F);
    EXPECT_EQ(y, 1.0F);
  });
}

TEST(StreamEnd, a_communicator_is_destroyed_after_what_streams_still_have) {
  run_ranks(2, [](Communicator& comm) {
    Stream stream = new_stream();
    std::vector<std::vector<float>> x(20, std::vector<float>(30000, 1.0F));
    for (auto& buffer : x) {
      ASSERT_OK(stream.run([&] { buffer.assign(buffer.size(), 2.0F); }));
      ASSERT_OK(comm.all_reduce(view(buffer), view(buffer), kSum, stream).status());
    }
    stream = {};  // its work goes on
    ASSERT_OK(comm.destroy());
    for (const auto& buffer : x) EXPECT_EQ(buffer.back(), 4.0F);
  });
}

}  // namespace
}  // namespace anyccl::test
