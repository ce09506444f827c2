#include <thread>

#include "support.hpp"

namespace anyccl {
namespace {

using namespace test;

struct SocketPublish : OnEachWire {};
ANYCCL_ON_EACH_WIRE(SocketPublish);

TEST_P(SocketPublish, puts_data_that_is_asked_for_in_its_place) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{7}, std::size_t{20000}, 3 * kMiB}) {
    const auto ranks = group(2, GetParam());
    std::vector<std::byte> place(bytes + 1);
    Incoming in = from(0, 1, 0, bytes);
    in.into = place.data();
    EXPECT_EQ(ranks[1]->publications().poll(in), nullptr);
    std::thread sender([&] {
      publish_to(*ranks[0], 1, number_of(1), pattern(bytes, 5));
      wait_until(*ranks[0], [&] { return ranks[0]->publications().settled(); });
    });
    const std::byte* data = nullptr;
    for (const Deadline deadline = patience(); data == nullptr && !deadline.passed();)
      data = ranks[1]->publications().poll(in);
    sender.join();
    EXPECT_EQ(data, place.data());
    EXPECT_TRUE(equal(data, pattern(bytes, 5)));
  }
}

TEST_P(SocketPublish, keeps_what_arrives_early) {
  constexpr std::uint32_t kNumbers = 300;
  const auto size = [](std::uint32_t number) { return std::size_t{number} * 37; };
  run_ranks(2, GetParam(), [&](int me, Transport& t) {
    for (std::uint32_t i = 0; i < kNumbers; ++i)
      publish_to(t, 1 - me, number_of(1 + i / 100, i), pattern(size(i), i));
    for (std::uint32_t i = kNumbers; i-- > 0;) {
      const Incoming in = from(1 - me, 1 + i / 100, i, size(i));
      EXPECT_TRUE(equal(await(t, in), pattern(size(i), i))) << i;
      t.publications().consumed(in);
    }
  });
}

TEST_P(SocketPublish, lets_both_ends_send_15_MiB_before_they_read) {
  run_ranks(2, GetParam(), [](int me, Transport& t) {
    for (std::uint32_t i = 0; i < 15; ++i) publish_to(t, 1 - me, number_of(1, i), pattern(kMiB, i));
    for (const Deadline deadline = patience(); !t.publications().settled();)
      ASSERT_FALSE(deadline.passed());
    for (std::uint32_t i = 0; i < 15; ++i) {
      const Incoming in = from(1 - me, 1, i, kMiB);
      ASSERT_TRUE(equal(await(t, in), pattern(kMiB, i))) << i;
      t.publications().consumed(in);
    }
  });
}

TEST_P(SocketPublish, does_not_send_more_than_the_window_holds) {
  const auto ranks = group(2, GetParam());
  constexpr std::uint32_t kNumbers = 64;
  const auto data = pattern(kMiB, 3);
  const ReaderOf all{1, 0, 0, kMiB};
  const auto offer = [&](std::uint32_t number) {
    const Outgoing out{.operation = 1, .number = number, .bytes = kMiB, .readers = {&all, 1}};
    return ranks[0]->publications().offer(out, data.data(), false) == Publications::Offered::copied;
  };
  std::uint32_t sent = 0;
  for (int refusals = 0; refusals < 1000 && sent < kNumbers; (void)ranks[1]->check()) {
    if (offer(sent))
      ++sent;
    else
      ++refusals;
  }
  EXPECT_GE(sent, 15U);
  EXPECT_LT(sent, kNumbers);
  // What it does ask for goes on.
  for (std::uint32_t i = 0; i < kNumbers; ++i) {
    const Incoming in = from(0, 1, i, kMiB);
    const std::byte* there = nullptr;
    for (const Deadline d = patience(); there == nullptr && !d.passed();
         there = ranks[1]->publications().poll(in)) {
      if (sent < kNumbers && offer(sent)) ++sent;
      (void)ranks[0]->publications().settled();
    }
    ASSERT_TRUE(equal(there, data)) << i;
    ranks[1]->publications().consumed(in);
  }
}

/// A lane that is behind must not wait for those that are ahead.
TEST_P(SocketPublish, lets_through_a_window_that_is_full_what_is_asked_for) {
  const auto ranks = group(2, GetParam());
  const auto data = pattern(kMiB, 3);
  const ReaderOf all{1, 0, 0, kMiB};
  const auto offer = [&](std::uint32_t number) {
    const Outgoing out{.operation = 1, .number = number, .bytes = kMiB, .readers = {&all, 1}};
    return ranks[0]->publications().offer(out, data.data(), false) == Publications::Offered::copied;
  };
  for (std::uint32_t number = 0; number < 32; ++number)
    for (int tries = 0; tries < 100 && !offer(number); ++tries) (void)ranks[1]->check();
  const std::byte* there = nullptr;
  bool sent = false;
  for (const Deadline d = patience(); there == nullptr && !d.passed();) {
    if (!sent) sent = offer(1000);
    there = ranks[1]->publications().poll(from(0, 1, 1000, kMiB));
    (void)ranks[0]->check();
    (void)ranks[1]->check();
  }
  EXPECT_TRUE(equal(there, data));
}

TEST_P(SocketPublish, forgets_what_an_operation_left_behind) {
  const auto ranks = group(2, GetParam());
  publish_to(*ranks[0], 1, number_of(1), pattern(10, 1));
  ASSERT_NE(await(*ranks[1], from(0, 1, 0, 10)), nullptr);
  for (std::uint64_t operation = 1; operation <= 100; ++operation)
    ranks[1]->publications().finished(operation, true);
  EXPECT_EQ(ranks[1]->publications().poll(from(0, 1, 0, 10)), nullptr);
}

// Not asserted, because it depends on the machine: for people who change this code.
TEST_P(SocketPublish, reports_its_latency) {
  run_ranks(2, GetParam(), [](int me, Transport& t) {
    for (const std::size_t bytes : {std::size_t{8}, 64 * std::size_t{1024}, kMiB}) {
      const auto mine = pattern(bytes, 1);
      std::vector<std::byte> theirs(bytes);
      const std::size_t tile = std::min(bytes, kMiB / 4);
      const std::uint32_t tiles = static_cast<std::uint32_t>(bytes / tile),
                          rounds = bytes < kMiB ? 1000 : 200;
      const auto start = Deadline::Clock::now();
      for (std::uint64_t round = 0; round < rounds; ++round) {
        const std::uint64_t operation = bytes * 1000 + round;
        for (std::uint32_t i = 0; i < tiles; ++i)
          publish_to(t, 1 - me, number_of(operation, i), std::span(mine).subspan(i * tile, tile));
        for (std::uint32_t i = 0; i < tiles; ++i) {
          Incoming in = from(1 - me, operation, i, tile);
          in.into = theirs.data() + i * tile;
          ASSERT_NE(await(t, in), nullptr);
          t.publications().consumed(in);
        }
      }
      const std::chrono::duration<double, std::micro> took = Deadline::Clock::now() - start;
      if (me == 0)
        std::printf("  exchange of %zu bytes: %.1f us (%.*s)\n", bytes, took.count() / rounds,
                    static_cast<int>(t.name().size()), t.name().data());
    }
  });
}

}  // namespace
}  // namespace anyccl
