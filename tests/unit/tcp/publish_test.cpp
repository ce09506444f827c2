#include <thread>

#include "support.hpp"

namespace anyccl {
namespace {

using namespace test;

constexpr std::size_t kMiB = std::size_t{1} << 20;

Incoming from(int rank, std::uint64_t operation, std::uint32_t number, std::size_t bytes) {
  return {.operation = operation,
          .number = number,
          .rank = static_cast<std::uint16_t>(rank),
          .bytes = bytes,
          .whole = bytes};
}

struct TcpPublish : OnEachWire {};
ANYCCL_ON_EACH_WIRE(TcpPublish);

TEST_P(TcpPublish, brings_data_of_every_size) {
  run_ranks(2, GetParam(), [](int me, Transport& t) {
    std::uint64_t operation = 0;
    for (const std::size_t bytes :
         {std::size_t{0}, std::size_t{1}, std::size_t{55}, std::size_t{8192}, 3 * kMiB}) {
      ++operation;
      publish_to(t, 1 - me, number_of(operation), pattern(bytes, static_cast<unsigned>(me)));
      const Incoming in = from(1 - me, operation, 0, bytes);
      EXPECT_TRUE(equal(await(t, in), pattern(bytes, static_cast<unsigned>(1 - me)))) << bytes;
      t.consumed(in);
    }
  });
}

TEST_P(TcpPublish, puts_data_that_is_asked_for_in_its_place) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{7}, std::size_t{20000}, 3 * kMiB}) {
    const auto ranks = group(2, GetParam());
    std::vector<std::byte> place(bytes + 1);
    Incoming in = from(0, 1, 0, bytes);
    in.into = place.data();
    EXPECT_EQ(ranks[1]->poll(in), nullptr);
    std::thread sender([&] {
      publish_to(*ranks[0], 1, number_of(1), pattern(bytes, 5));
      wait_until(*ranks[0], [&] { return ranks[0]->settled(); });
    });
    const std::byte* data = nullptr;
    for (const Deadline deadline = patience(); data == nullptr && !deadline.passed();)
      data = ranks[1]->poll(in);
    sender.join();
    EXPECT_EQ(data, place.data());
    EXPECT_TRUE(equal(data, pattern(bytes, 5)));
  }
}

TEST_P(TcpPublish, keeps_the_answer_until_it_is_consumed) {
  const auto ranks = group(2, GetParam());
  publish_to(*ranks[0], 1, number_of(1), pattern(100, 1));
  const Incoming in = from(0, 1, 0, 100);
  const std::byte* data = await(*ranks[1], in);
  publish_to(*ranks[0], 1, number_of(1, 1), pattern(100, 2));
  EXPECT_TRUE(equal(await(*ranks[1], from(0, 1, 1, 100)), pattern(100, 2)));
  EXPECT_EQ(ranks[1]->poll(in), data);
  EXPECT_TRUE(equal(data, pattern(100, 1)));
  ranks[1]->consumed(in);
  EXPECT_EQ(ranks[1]->poll(in), nullptr);
}

TEST_P(TcpPublish, sends_results_that_were_written_into_reserved_memory) {
  run_ranks(2, GetParam(), [](int me, Transport& t) {
    for (std::uint32_t number = 0; number < 20; ++number) {
      const std::size_t bytes = number * 5000;
      const ReaderOf all{static_cast<std::uint16_t>(1 - me), 0, 0, bytes};
      const Outgoing out{.operation = 1, .number = number, .bytes = bytes, .readers = {&all, 1}};
      std::byte* room = nullptr;
      for (const Deadline d = patience(); room == nullptr && !d.passed();) room = t.reserve(out);
      ASSERT_NE(room, nullptr);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(room) % 64, 0U);
      const auto data = pattern(bytes, number);
      std::copy(data.begin(), data.end(), room);
      t.publish(out);
      const Incoming in = from(1 - me, 1, number, bytes);
      EXPECT_TRUE(equal(await(t, in), data));
      t.consumed(in);
    }
  });
}

TEST_P(TcpPublish, sends_every_reader_only_its_own_part) {
  run_ranks(3, GetParam(), [](int me, Transport& t) {
    const auto whole = pattern(30000, 9);
    if (me == 0) {
      Outgoing out = number_of(1);
      out.bytes = whole.size();
      const ReaderOf parts[] = {{1, 0, 100, 9000}, {2, 0, 9100, 20000}};
      publish(t, out, {parts[0], parts[1]}, whole.data());
      return;
    }
    Incoming in = from(0, 1, 0, me == 1 ? 9000 : 20000);
    in.offset = me == 1 ? 100 : 9100;
    in.whole = whole.size();
    EXPECT_TRUE(equal(await(t, in), std::span(whole).subspan(in.offset, in.bytes)));
  });
}

TEST_P(TcpPublish, keeps_what_arrives_early) {
  constexpr std::uint32_t kNumbers = 300;
  const auto size = [](std::uint32_t number) { return std::size_t{number} * 37; };
  run_ranks(2, GetParam(), [&](int me, Transport& t) {
    for (std::uint32_t i = 0; i < kNumbers; ++i)
      publish_to(t, 1 - me, number_of(1 + i / 100, i), pattern(size(i), i));
    for (std::uint32_t i = kNumbers; i-- > 0;) {
      const Incoming in = from(1 - me, 1 + i / 100, i, size(i));
      EXPECT_TRUE(equal(await(t, in), pattern(size(i), i))) << i;
      t.consumed(in);
    }
  });
}

TEST_P(TcpPublish, tells_messages_of_a_pair_from_publications) {
  const auto ranks = group(2, GetParam());
  publish_to(*ranks[0], 1, number_of(1, 0, Context::point_to_point), pattern(10, 1));
  publish_to(*ranks[0], 1, number_of(1), pattern(10, 2));
  Incoming in = from(0, 1, 0, 10);
  EXPECT_TRUE(equal(await(*ranks[1], in), pattern(10, 2)));
  in.context = Context::point_to_point;
  EXPECT_TRUE(equal(await(*ranks[1], in), pattern(10, 1)));
}

TEST_P(TcpPublish, lets_both_ends_send_64_MiB_before_they_read) {
  run_ranks(2, GetParam(), [](int me, Transport& t) {
    for (std::uint32_t i = 0; i < 64; ++i) publish_to(t, 1 - me, number_of(1, i), pattern(kMiB, i));
    for (const Deadline deadline = patience(); !t.settled();) ASSERT_FALSE(deadline.passed());
    for (std::uint32_t i = 0; i < 64; ++i) {
      const Incoming in = from(1 - me, 1, i, kMiB);
      ASSERT_TRUE(equal(await(t, in), pattern(kMiB, i))) << i;
      t.consumed(in);
    }
  });
}

TEST_P(TcpPublish, stops_taking_in_what_nobody_asks_for) {
  const auto ranks = group(2, GetParam(), {.early_bytes = 0});
  constexpr std::uint32_t kNumbers = 64;
  const auto data = pattern(kMiB, 3);
  const ReaderOf all{1, 0, 0, kMiB};
  const auto offer = [&](std::uint32_t number) {
    const Outgoing out{.operation = 1, .number = number, .bytes = kMiB, .readers = {&all, 1}};
    return ranks[0]->offer(out, data.data(), false) == Transport::Offered::copied;
  };
  std::uint32_t sent = 0;
  for (int refusals = 0; refusals < 1000 && sent < kNumbers; (void)ranks[1]->check()) {
    if (offer(sent))
      ++sent;
    else
      ++refusals;
  }
  EXPECT_GE(sent, 16U);
  EXPECT_LT(sent, kNumbers);
  // What it does ask for goes on.
  for (std::uint32_t i = 0; i < kNumbers; ++i) {
    const Incoming in = from(0, 1, i, kMiB);
    const std::byte* there = nullptr;
    for (const Deadline d = patience(); there == nullptr && !d.passed();
         there = ranks[1]->poll(in)) {
      if (sent < kNumbers && offer(sent)) ++sent;
      (void)ranks[0]->settled();
    }
    ASSERT_TRUE(equal(there, data)) << i;
    ranks[1]->consumed(in);
  }
}

TEST_P(TcpPublish, forgets_what_an_operation_left_behind) {
  const auto ranks = group(2, GetParam());
  publish_to(*ranks[0], 1, number_of(1), pattern(10, 1));
  ASSERT_NE(await(*ranks[1], from(0, 1, 0, 10)), nullptr);
  for (std::uint64_t operation = 1; operation <= 100; ++operation)
    ranks[1]->finished(operation, true);
  EXPECT_EQ(ranks[1]->poll(from(0, 1, 0, 10)), nullptr);
}

TEST_P(TcpPublish, wakes_a_sleeper_when_data_comes) {
  run_ranks(2, GetParam(), [](int me, Transport& t) {
    for (std::uint32_t i = 0; i < 20; ++i) {
      if (me == 0) publish_to(t, 1, number_of(1, i), pattern(10, i));
      const Incoming in = from(1 - me, 1, i, 10);
      while (t.poll(in) == nullptr) {
        const auto start = Deadline::Clock::now();
        t.sleep(std::chrono::seconds(60));
        ASSERT_LT(Deadline::Clock::now() - start, std::chrono::seconds(20));
      }
      t.consumed(in);
      if (me == 1) publish_to(t, 0, number_of(1, i), pattern(10, i));
    }
  });
}

// Not asserted, because it depends on the machine: for people who change this code.
TEST_P(TcpPublish, reports_its_latency) {
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
          t.consumed(in);
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
