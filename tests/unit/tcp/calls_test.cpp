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

struct TcpCalls : OnEachWire {};
ANYCCL_ON_EACH_WIRE(TcpCalls);

TEST_P(TcpCalls, tell_a_peer_that_waits_what_this_rank_called) {
  const auto ranks = group(2, GetParam());
  ranks[0]->begin(call(3, 70));
  ASSERT_TRUE(ranks[0]->check().ok());
  CallRecord record;
  wait_until(*ranks[1], [&] { return ranks[1]->call_of(Rank{0}, 3, record); });
  EXPECT_EQ(record, call(3, 70));
  EXPECT_FALSE(ranks[1]->call_of(Rank{0}, 2, record));
}

TEST_P(TcpCalls, of_this_rank_itself_are_known_for_a_while) {
  const auto ranks = group(2, GetParam());
  CallRecord record;
  EXPECT_FALSE(ranks[0]->call_of(Rank{0}, 1, record));
  for (std::uint64_t s = 1; s <= 9; ++s) ranks[0]->begin(call(s, s));
  EXPECT_FALSE(ranks[0]->call_of(Rank{0}, 1, record));
  EXPECT_TRUE(ranks[0]->call_of(Rank{0}, 2, record));
  EXPECT_EQ(record, call(2, 2));
}

TEST_P(TcpCalls, are_answered_by_a_peer_that_is_further_on) {
  const auto ranks = group(2, GetParam());
  for (std::uint64_t s = 1; s <= 9; ++s) ranks[0]->begin(call(s, s));
  ranks[1]->begin(call(4, 1000));
  ASSERT_TRUE(ranks[1]->check().ok());
  CallRecord record;
  for (const Deadline d = patience(); !ranks[1]->call_of(Rank{0}, 4, record);) {
    ASSERT_FALSE(d.passed());
    ASSERT_TRUE(ranks[0]->check().ok());
  }
  EXPECT_EQ(record, call(4, 4));
}

TEST_P(TcpCalls, do_not_lose_data_that_comes_before_them) {
  const auto ranks = group(2, GetParam());
  publish_to(*ranks[0], 1, number_of(1), pattern(50000, 1));
  ranks[0]->begin(call(1, 1));
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

TEST_P(TcpCalls, that_differ_are_found_out_from_the_data) {
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
      ASSERT_EQ(ranks[1]->poll(in), nullptr);
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
    EXPECT_EQ(ranks[1]->poll(in), nullptr);
  return problem;
}

TEST_P(TcpCalls, of_different_total_size_name_both_sizes) {
  Outgoing out = number_of(4, 0, Context::point_to_point);
  out.sized = true;
  out.total = 5000;
  Incoming in;
  in.context = Context::point_to_point;
  in.operation = 4;
  in.sized = true;
  in.total = 4000;
  in.bytes = 1000;
  const Status problem = problem_of(GetParam(), out, 1000, in);
  EXPECT_EQ(problem.code(), Code::invalid_usage);
  EXPECT_EQ(problem.message(),
            "rank 0 sends 5000 bytes where rank 1 expects 4000 (message 4): the two must agree");
}

TEST_P(TcpCalls, of_different_size_name_both_sizes) {
  Incoming in;
  in.operation = 2;
  in.bytes = in.whole = 20;
  const Status problem = problem_of(GetParam(), number_of(2), 21, in);
  EXPECT_EQ(problem.code(), Code::invalid_usage);
  EXPECT_EQ(problem.message(),
            "rank 0 sends 21 bytes where rank 1 expects 20 (operation 2): the two must agree");
}

TEST_P(TcpCalls, of_the_same_total_size_fit) {
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
