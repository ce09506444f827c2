#include <atomic>
#include <thread>

#include "base/error.hpp"
#include "support.hpp"

namespace anyccl {
namespace {

using namespace test;

/// Publishes for `reader` until no more goes.
void fill_connection(Transport& t, std::uint16_t reader = 1) {
  const auto data = pattern(kMiB, 1);
  const ReaderOf all{reader, 0, 0, kMiB};
  Outgoing out = number_of(1);
  out.bytes = kMiB;
  out.readers = {&all, 1};
  while (t.publications().offer(out, data.data(), false) == Publications::Offered::copied)
    ++out.number;
}

struct SocketAbort : OnEachWire {};
ANYCCL_ON_EACH_WIRE(SocketAbort);

TEST_P(SocketAbort, tells_every_peer_who_failed_and_why) {
  const auto ranks = group(3, GetParam());
  ranks[1]->abort(error(Code::system_error, "no more memory"));
  for (const int peer : {0, 2}) {
    const Status problem = wait_for_problem(*ranks[static_cast<std::size_t>(peer)]);
    EXPECT_EQ(problem.code(), Code::remote_error);
    EXPECT_EQ(problem.message(), "rank 1 failed: no more memory");
  }
}

TEST_P(SocketAbort, on_purpose_is_not_a_failure_of_the_rank) {
  const auto ranks = group(2, GetParam());
  ranks[1]->abort(error(Code::aborted, "the user said so"));
  const Status problem = wait_for_problem(*ranks[0]);
  EXPECT_EQ(problem.code(), Code::aborted);
  EXPECT_EQ(problem.message(), "rank 1 aborted: the user said so");
}

TEST_P(SocketAbort, keeps_back_what_a_rank_still_sends_so_that_it_notices) {
  const auto ranks = group(2, GetParam());
  ranks[1]->abort(error(Code::system_error, "no more memory"));
  EXPECT_FALSE(wait_for_problem(*ranks[0]).ok());
  const ReaderOf reader{1, 0, 0, 8};
  Outgoing out = number_of(1);
  out.bytes = 8;
  out.readers = {&reader, 1};
  EXPECT_EQ(ranks[0]->publications().offer(out, pattern(8, 1).data(), false),
            Publications::Offered::busy);
}

TEST_P(SocketAbort, passes_on_that_calls_do_not_fit) {
  const auto ranks = group(2, GetParam());
  ranks[1]->abort(error(Code::invalid_usage, "two calls"));
  EXPECT_EQ(wait_for_problem(*ranks[0]).code(), Code::invalid_usage);
}

TEST_P(SocketAbort, is_what_this_rank_is_told_too) {
  const auto ranks = group(2, GetParam());
  ranks[0]->abort(error(Code::timeout, "first"));
  ranks[0]->abort(error(Code::aborted, "second"));
  EXPECT_EQ(ranks[0]->check().code(), Code::timeout);
  EXPECT_EQ(ranks[0]->check().message(), "first");
}

TEST_P(SocketAbort, cuts_a_text_that_is_too_long) {
  const auto ranks = group(2, GetParam());
  ranks[0]->abort(error(Code::internal, "{}", std::string(100'000, 'x')));
  const Status problem = wait_for_problem(*ranks[1]);
  EXPECT_GT(problem.message().size(), 4000U);
  EXPECT_LT(problem.message().size(), 5000U);
}

TEST_P(SocketAbort, is_noticed_even_if_the_connection_is_full) {
  const auto ranks = group(2, GetParam());
  fill_connection(*ranks[0]);
  ranks[0]->abort(error(Code::aborted, "enough"));
  ranks[0]->deliver_abort();
  EXPECT_TRUE(ranks[0]->publications().settled());
  wait_until(*ranks[1], [&] {
    return ranks[1]->state(Rank{0}) == PeerState::dead || !ranks[1]->check().ok();
  });
}

TEST_P(SocketAbort, reaches_a_peer_that_reads_even_if_the_connection_is_full) {
  const auto ranks = group(2, GetParam());
  fill_connection(*ranks[0]);
  Status problem;
  std::thread peer([&] { problem = wait_for_problem(*ranks[1]); });
  ranks[0]->abort(error(Code::aborted, "enough"));
  ranks[0]->deliver_abort();
  peer.join();
  EXPECT_EQ(problem.message(), "rank 0 aborted: enough");
}

TEST_P(SocketAbort, is_not_lost_when_the_process_ends_before_it_has_read_everything) {
  auto ranks = group(2, GetParam());
  fill_connection(*ranks[0]);
  publish_to(*ranks[1], 0, number_of(1), pattern(1000, 1));
  Status problem;
  std::thread peer([&] { problem = wait_for_problem(*ranks[1]); });
  ranks[0]->abort(error(Code::aborted, "enough"));
  ranks[0]->deliver_abort();
  ranks[0].reset();
  peer.join();
  EXPECT_EQ(problem.message(), "rank 0 aborted: enough");
}

TEST_P(SocketAbort, of_both_sides_ends_though_the_connection_is_full_both_ways) {
  const auto ranks = group(2, GetParam());
  fill_connection(*ranks[0], 1);
  fill_connection(*ranks[1], 0);
  for (const auto& rank : ranks) rank->abort(error(Code::aborted, "enough"));
  std::thread other([&] { ranks[1]->deliver_abort(); });
  ranks[0]->deliver_abort();
  other.join();
}

TEST_P(SocketAbort, may_come_from_another_thread_at_any_time) {
  for (int round = 0; round < 50; ++round) {
    const auto ranks = group(2, GetParam());
    std::atomic<bool> over{false};
    const auto data = pattern(100'000, 1);
    std::thread owner([&] {
      const ReaderOf all{1, 0, 0, data.size()};
      Outgoing out = number_of(1);
      out.bytes = data.size();
      out.readers = {&all, 1};
      while (!over.load()) {
        if (ranks[0]->publications().offer(out, data.data(), false) ==
            Publications::Offered::copied)
          ++out.number;
        if (!ranks[0]->check().ok()) break;
      }
      ranks[0]->deliver_abort();
    });
    std::thread reader([&] {
      Incoming in;
      in.operation = 1;
      in.bytes = data.size();
      for (const Deadline d = patience(); !d.passed();) {
        if (ranks[1]->publications().poll(in) != nullptr) {
          ranks[1]->publications().consumed(in);
          ++in.number;
        } else if (!ranks[1]->check().ok() || ranks[1]->state(Rank{0}) == PeerState::dead) {
          break;
        }
        if (in.number == 5) ranks[0]->abort(error(Code::aborted, "enough"));
      }
      EXPECT_GE(in.number, 5U);
    });
    reader.join();
    over = true;
    owner.join();
    EXPECT_EQ(ranks[0]->check().code(), Code::aborted);
  }
}

TEST_P(SocketAbort, does_not_keep_this_rank_from_leaving) {
  const auto ranks = group(2, GetParam());
  ranks[0]->abort(error(Code::aborted, "enough"));
  ranks[0]->leave();
  EXPECT_EQ(wait_for_problem(*ranks[1]).code(), Code::aborted);
}

}  // namespace
}  // namespace anyccl
