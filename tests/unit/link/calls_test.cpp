#include "support.hpp"

namespace anyccl {
namespace {

using namespace test;

CallRecord call(std::uint64_t sequence, std::uint64_t count) {
  CallRecord record;
  record.sequence = sequence;
  record.count = count;
  return record;
}

struct SocketCalls : OnEachWire {};
ANYCCL_ON_EACH_WIRE(SocketCalls);

TEST_P(SocketCalls, do_not_lose_data_that_comes_before_them) {
  const auto ranks = group(2, GetParam());
  publish_to(*ranks[0], 1, number_of(1), pattern(50000, 1));
  ranks[0]->publications().announce(call(1, 1));
  CallRecord record;
  for (const Deadline d = patience(); !ranks[1]->call_of(Rank{0}, 1, record);) {
    ASSERT_FALSE(d.passed());
    ASSERT_TRUE(ranks[0]->check().ok());
  }
  Incoming in;
  in.operation = 1;
  in.bytes = 50000;
  EXPECT_TRUE(equal(await(*ranks[1], in), pattern(50000, 1)));
}

TEST_P(SocketCalls, that_differ_are_found_out_from_the_data) {
  for (const bool early : {false, true}) {
    const auto ranks = group(2, GetParam());
    Incoming in;
    in.operation = 7;
    in.digest = 111;
    in.bytes = 8;
    std::vector<std::byte> place(8);
    in.into = place.data();
    Outgoing out = number_of(7);
    out.digest = 222;
    publish_to(*ranks[0], 1, out, pattern(8, 1));
    if (early) wait_until(*ranks[1], [&, n = 0]() mutable { return ++n > 3; });
    Status problem;
    for (const Deadline d = patience(); problem.ok(); problem = ranks[1]->check()) {
      ASSERT_FALSE(d.passed());
      ASSERT_EQ(ranks[1]->publications().poll(in), nullptr);
    }
    EXPECT_EQ(problem.code(), Code::invalid_usage);
    EXPECT_EQ(problem.message(), "rank 0 is in a different call at operation 7 than rank 1");
    EXPECT_EQ(place, std::vector<std::byte>(8));
  }
}

/// What check() says at rank 1, which expects `in` when rank 0 publishes `bytes` bytes of `out`.
Status problem_of(Wire wire, Outgoing out, std::size_t bytes, const Incoming& in) {
  const auto ranks = group(2, wire);
  publish_to(*ranks[0], 1, out, pattern(bytes, 1));
  Status problem;
  for (const Deadline d = patience(); problem.ok() && !d.passed(); problem = ranks[1]->check())
    EXPECT_EQ(ranks[1]->publications().poll(in), nullptr);
  return problem;
}

TEST_P(SocketCalls, of_different_total_size_name_both_sizes) {
  const auto ranks = group(2, GetParam());
  const auto data = pattern(1000, 1);
  ASSERT_EQ(ranks[0]->messages().send({Rank{1}, 0, 4, 0, 1000, 5000}, data.data()),
            Messages::Sent::copied);
  std::vector<std::byte> place(1000);
  const Status problem = [&] {
    Status found;
    wait_until(*ranks[1], [&] {
      EXPECT_FALSE(ranks[1]->messages().receive({Rank{0}, 0, 4, 0, 1000, 4000}, 0, place.data()));
      return !(found = ranks[1]->check()).ok();
    });
    return found;
  }();
  EXPECT_EQ(problem.code(), Code::invalid_usage);
  EXPECT_EQ(problem.message(),
            "rank 0 sends 5000 bytes where rank 1 expects 4000 (message 4): the two must agree");
}

TEST_P(SocketCalls, of_different_size_name_both_sizes) {
  Incoming in;
  in.operation = 2;
  in.bytes = in.whole = 20;
  const Status problem = problem_of(GetParam(), number_of(2), 21, in);
  EXPECT_EQ(problem.code(), Code::invalid_usage);
  EXPECT_EQ(problem.message(),
            "rank 0 sends 21 bytes where rank 1 expects 20 (operation 2): the two must agree");
}

TEST_P(SocketCalls, of_the_same_total_size_fit) {
  const auto ranks = group(2, GetParam());
  Outgoing out = number_of(4, 2);
  out.sized = true;
  out.total = 5000;
  publish_to(*ranks[0], 1, out, pattern(1000, 1));
  Incoming in;
  in.operation = 4;
  in.number = 2;
  in.sized = true;
  in.total = 5000;
  in.bytes = 1000;
  EXPECT_TRUE(equal(await(*ranks[1], in), pattern(1000, 1)));
}

}  // namespace
}  // namespace anyccl
