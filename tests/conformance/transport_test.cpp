// What every transport of the table must do; a new one is covered the day it is added.

#include <algorithm>
#include <thread>

#include "algorithm/plan/plan.hpp"
#include "base/error.hpp"
#include "support/transports.hpp"

namespace anyccl {
namespace {

using namespace test;

class EachTransport : public testing::TestWithParam<TransportEntry> {
 protected:
  using Ranks = std::vector<std::unique_ptr<Transport>>;
  static Ranks make(int ranks = 2) { return make_ranks(GetParam(), ranks); }
  /// Runs `body` for every rank in a thread of its own.
  static void run(int count, const std::function<void(int me, Transport&)>& body) {
    const Ranks ranks = make(count);
    std::vector<std::thread> threads;
    for (int r = 0; r < count; ++r)
      threads.emplace_back([&, r] { body(r, *ranks[static_cast<std::size_t>(r)]); });
    for (std::thread& thread : threads) thread.join();
    for (const auto& rank : ranks) rank->leave();
  }
};

std::string name_of_test(const testing::TestParamInfo<TransportEntry>& info) {
  return std::string(info.param.name);
}
#define ANYCCL_ON_EACH_TRANSPORT(suite) \
  struct suite : EachTransport {};      \
  INSTANTIATE_TEST_SUITE_P(transports, suite, testing::ValuesIn(transports()), name_of_test)

/// Publication `number` of an operation, for one rank that posts progress number + 1 for it.
void publish_to(Transport& t, int reader, std::uint64_t operation, std::uint32_t number,
                std::span<const std::byte> bytes, std::uint32_t digest = 0) {
  Outgoing out;
  out.operation = operation;
  out.number = number;
  out.digest = digest;
  out.bytes = bytes.size();
  publish(t, out, {{static_cast<std::uint16_t>(reader), number + 1, 0, bytes.size()}},
          bytes.data());
}

void finish_reading(Transport& t, const Incoming& in) {
  t.publications().consumed(in);
  t.publications().post(in.operation, 0, in.number + 1);
}

ANYCCL_ON_EACH_TRANSPORT(Publication);

TEST_P(Publication, is_read_whatever_its_size) {
  run(2, [](int me, Transport& t) {
    std::uint64_t operation = 0;
    constexpr std::size_t kSizes[] = {0, 1, 8, 55, 56, 57, 1000, 8192, 16384, 100'000, 400'000};
    for (const std::size_t bytes : kSizes) {
      ++operation;
      publish_to(t, 1 - me, operation, 0, pattern(bytes, static_cast<unsigned>(me)));
      const Incoming in = from(1 - me, operation, 0, bytes);
      EXPECT_TRUE(equal(await(t, in), pattern(bytes, static_cast<unsigned>(1 - me)))) << bytes;
      finish_reading(t, in);
      t.publications().finished(operation, true);
    }
  });
}

TEST_P(Publication, waits_for_its_place_among_many) {
  constexpr std::uint32_t kNumbers = 300;
  run(2, [](int me, Transport& t) {
    for (std::uint32_t i = 0; i < kNumbers; ++i) {
      const std::size_t bytes = std::size_t{i % 7} * 1500;
      publish_to(t, 1 - me, 1, i, pattern(bytes, i));
      const Incoming in = from(1 - me, 1, i, bytes);
      ASSERT_TRUE(equal(await(t, in), pattern(bytes, i))) << i;
      finish_reading(t, in);
    }
  });
}

TEST_P(Publication, may_come_before_it_is_wanted) {
  run(2, [](int me, Transport& t) {
    for (std::uint32_t i = 0; i < 16; ++i) publish_to(t, 1 - me, 1, i, pattern(37 * i, i));
    for (std::uint32_t i = 16; i-- > 0;) {
      const Incoming in = from(1 - me, 1, i, 37 * i);
      EXPECT_TRUE(equal(await(t, in), pattern(37 * i, i))) << i;
      t.publications().consumed(in);
    }
    t.publications().post(1, 0, 16);
  });
}

TEST_P(Publication, of_many_operations_is_not_mixed_up) {
  run(2, [](int me, Transport& t) {
    for (std::uint64_t operation = 1; operation <= 500; ++operation) {
      const auto seed = static_cast<unsigned>(operation);
      publish_to(t, 1 - me, operation, 0, pattern(40, seed));
      const Incoming in = from(1 - me, operation, 0, 40);
      ASSERT_TRUE(equal(await(t, in), pattern(40, seed))) << operation;
      t.publications().consumed(in);
      t.publications().finished(operation, true);
    }
  });
}

TEST_P(Publication, of_the_next_operations_need_not_wait_for_readers) {
  const Ranks ranks = make();
  for (std::uint64_t operation = 1; operation <= kBanks; ++operation)
    publish_to(*ranks[0], 1, operation, 0, pattern(40, static_cast<unsigned>(operation)));
  for (std::uint64_t operation = 1; operation <= kBanks; ++operation)
    EXPECT_TRUE(equal(await(*ranks[1], from(0, operation, 0, 40)),
                      pattern(40, static_cast<unsigned>(operation))));
}

TEST_P(Publication, has_a_part_for_each_reader) {
  run(3, [](int me, Transport& t) {
    const auto whole = pattern(30'000, 9);
    if (me == 0) {
      Outgoing out;
      out.operation = 1;
      out.bytes = whole.size();
      return publish(t, out, {{1, 1, 100, 9000}, {2, 1, 9100, 20'000}}, whole.data());
    }
    Incoming in = from(0, 1, 0, me == 1 ? 9000 : 20'000);
    in.offset = me == 1 ? 100 : 9100;
    in.whole = whole.size();
    EXPECT_TRUE(equal(await(t, in), std::span(whole).subspan(in.offset, in.bytes)));
    finish_reading(t, in);
  });
}

TEST_P(Publication, stays_readable_until_it_is_consumed) {
  const Ranks ranks = make();
  publish_to(*ranks[0], 1, 1, 0, pattern(100, 1));
  const Incoming in = from(0, 1, 0, 100);
  const std::byte* const data = await(*ranks[1], in);
  publish_to(*ranks[0], 1, 1, 1, pattern(100, 2));
  EXPECT_TRUE(equal(await(*ranks[1], from(0, 1, 1, 100)), pattern(100, 2)));
  EXPECT_EQ(ranks[1]->publications().poll(in), data);
  EXPECT_TRUE(equal(data, pattern(100, 1)));
}

TEST_P(Publication, is_written_into_reserved_memory) {
  run(2, [](int me, Transport& t) {
    for (std::uint32_t i = 0; i < 20; ++i) {
      const std::size_t bytes = i * 5000;
      const ReaderOf all{static_cast<std::uint16_t>(1 - me), i + 1, 0, bytes};
      const Outgoing out{.operation = 1, .number = i, .bytes = bytes, .readers = {&all, 1}};
      std::byte* room = nullptr;
      wait_until(t, [&] { return (room = t.publications().reserve(out)) != nullptr; });
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(room) % 8, 0U);
      std::ranges::copy(pattern(bytes, i), room);
      t.publications().publish(out);
      const Incoming in = from(1 - me, 1, i, bytes);
      EXPECT_TRUE(equal(await(t, in), pattern(bytes, i)));
      finish_reading(t, in);
    }
  });
}

TEST_P(Publication, is_lent_until_its_readers_have_read_it) {
  const Ranks ranks = make();
  auto data = pattern(300'000, 4);
  std::vector<std::byte> place(data.size());
  const ReaderOf all{1, 1, 0, data.size()};
  const Outgoing out{.operation = 1, .bytes = data.size(), .readers = {&all, 1}};
  Publications& p = ranks[0]->publications();
  const auto offered = p.offer(out, data.data(), true);
  ASSERT_NE(offered, Publications::Offered::busy);
  if (offered == Publications::Offered::refused) publish(*ranks[0], out, {all}, data.data());
  if (offered != Publications::Offered::lent) std::ranges::fill(data, std::byte{0});
  std::thread sender([&] { wait_until(*ranks[0], [&] { return p.settled(); }); });
  Incoming in = from(0, 1, 0, place.size());
  in.into = place.data();
  const std::byte* const found = await(*ranks[1], in);
  EXPECT_TRUE(equal(found, pattern(place.size(), 4)));
  finish_reading(*ranks[1], in);
  sender.join();
}

TEST_P(Publication, of_another_call_is_not_read) {
  const Ranks ranks = make();
  publish_to(*ranks[0], 1, 7, 0, pattern(8, 1), 222);
  Incoming in = from(0, 7, 0, 8);
  in.digest = 111;
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(ranks[1]->publications().poll(in), nullptr);
    if (const Status status = ranks[1]->check(); !status.ok()) {
      EXPECT_EQ(status.code(), Code::invalid_usage) << status.message();
    }
  }
}

TEST_P(Publication, of_another_size_names_both) {
  const Ranks ranks = make();
  const auto data = pattern(20'000, 1);
  Outgoing out;
  out.operation = 1;
  out.sized = true;
  out.bytes = out.total = data.size();
  publish(*ranks[0], out, {{1, 1, 0, data.size()}}, data.data());
  Incoming in = from(0, 1, 0, data.size());
  in.sized = true;
  in.total = 30'000;
  Status problem;
  wait_until(*ranks[1], [&] {
    EXPECT_EQ(ranks[1]->publications().poll(in), nullptr);
    return !(problem = ranks[1]->check()).ok();
  });
  EXPECT_EQ(problem.code(), Code::invalid_usage);
  EXPECT_NE(problem.message().find("20000"), std::string_view::npos) << problem.message();
  EXPECT_NE(problem.message().find("30000"), std::string_view::npos) << problem.message();
}

TEST_P(Publication, wakes_a_sleeper) {
  run(2, [](int me, Transport& t) {
    for (std::uint32_t i = 0; i < 50; ++i) {
      if (me == 0) publish_to(t, 1, 1, i, pattern(10, i));
      const Incoming in = from(1 - me, 1, i, 10);
      for (const Deadline late = patience(); t.publications().poll(in) == nullptr;) {
        ASSERT_FALSE(late.passed());
        t.prepare_sleep(Transport::Alarm::own);
        const bool there = t.publications().poll(in) != nullptr;
        t.sleep(there ? std::chrono::seconds(0) : std::chrono::seconds(20));
        if (there) break;
      }
      finish_reading(t, in);
      if (me == 1) publish_to(t, 0, 1, i, pattern(10, i));
    }
  });
}

ANYCCL_ON_EACH_TRANSPORT(Message);

TEST_P(Message, arrives_whatever_its_size) {
  run(2, [](int me, Transport& t) {
    const std::size_t sizes[] = {0, 1, 8, 100, 2048, 32'768, 32'769, 300'000, 5'000'000};
    std::vector<std::vector<std::byte>> mine, theirs;
    MessageRunner runner(t);
    for (std::uint32_t i = 0; i < std::size(sizes); ++i) {
      mine.push_back(pattern(sizes[i], i + 10 * static_cast<unsigned>(me)));
      theirs.emplace_back(sizes[i]);
      runner.send(1 - me, i + 1, i, mine.back());
      runner.receive(1 - me, i + 1, i, theirs.back());
    }
    runner.run();
    for (std::uint32_t i = 0; i < std::size(sizes); ++i)
      EXPECT_EQ(theirs[i], pattern(sizes[i], i + 10 * static_cast<unsigned>(1 - me))) << sizes[i];
  });
}

TEST_P(Message, of_any_pair_comes_in_the_order_of_its_sends) {
  constexpr std::uint32_t kMessages = 200;
  run(3, [](int me, Transport& t) {
    std::vector<std::vector<std::byte>> mine, theirs;
    mine.reserve(2 * kMessages);
    theirs.reserve(2 * kMessages);
    MessageRunner runner(t);
    for (std::uint32_t i = 1; i <= kMessages; ++i)
      for (int other = 0; other < 3; ++other) {
        if (other == me) continue;
        runner.send(other, i, i, mine.emplace_back(pattern(i % 50 * 40, i)));
        runner.receive(other, i, i, theirs.emplace_back(i % 50 * 40));
      }
    runner.run();
    EXPECT_EQ(mine, theirs);
  });
}

TEST_P(Message, is_not_mixed_up_with_a_publication) {
  const Ranks ranks = make();
  const auto message = pattern(10, 1);
  std::vector<std::byte> received(10);
  MessageRunner sender(*ranks[0]), receiver(*ranks[1]);
  sender.send(1, 1, 0, message);
  receiver.receive(0, 1, 0, received);
  publish_to(*ranks[0], 1, 1, 0, pattern(10, 2));
  sender.run();
  EXPECT_TRUE(equal(await(*ranks[1], from(0, 1, 0, 10)), pattern(10, 2)));
  receiver.run();
  EXPECT_EQ(received, message);
}

TEST_P(Message, may_be_sent_and_received_at_once) {
  const Ranks ranks = make();
  Messages &sender = ranks[0]->messages(), &receiver = ranks[1]->messages();
  const auto message = pattern(100, 1);
  if (!sender.send_at_once(Rank{1}, 5, message)) {
    MessageRunner runner(*ranks[0]);
    runner.send(1, 1, 5, message);
    runner.run();
  }
  std::vector<std::byte> received(100), longer(101);
  Envelope envelope;
  wait_until(*ranks[1], [&] { return receiver.peek(Rank{0}, 1, envelope); });
  EXPECT_FALSE(receiver.receive_at_once(Rank{0}, 6, 1, received)) << "another digest";
  EXPECT_FALSE(receiver.receive_at_once(Rank{0}, 5, 1, longer)) << "another size";
  if (!receiver.receive_at_once(Rank{0}, 5, 1, received)) {
    MessageRunner runner(*ranks[1]);
    runner.receive(0, 1, 5, received);
    runner.run();
  }
  EXPECT_EQ(received, message);
  EXPECT_TRUE(ranks[1]->check().ok());
}

TEST_P(Message, is_held_back_if_nobody_receives) {
  const Ranks ranks = make();
  const auto data = pattern(std::size_t{1} << 20, 3);
  constexpr std::uint64_t kMost = 1000;
  MessageRunner sender(*ranks[0]), receiver(*ranks[1]);
  for (std::uint64_t i = 1; i <= kMost; ++i) sender.send(1, i, 0, data);
  for (int i = 0; i < 100'000 && !sender.done(); ++i) sender.advance();
  EXPECT_FALSE(sender.done());
  std::vector<std::byte> received(data.size());
  receiver.receive(0, 1, 0, received);
  for (const Deadline late = patience(); !receiver.done() && !late.passed();) {
    receiver.advance();
    sender.advance();
    ASSERT_TRUE(ranks[0]->check().ok());
  }
  EXPECT_EQ(received, data);
}

TEST_P(Message, of_another_type_is_a_problem_of_the_receiver) {
  const Ranks ranks = make();
  const auto message = pattern(8, 1);
  MessageRunner sender(*ranks[0]);
  sender.send(1, 1, 5, message);
  sender.run();
  std::vector<std::byte> received(8);
  const Fragment in{.peer = Rank{0}, .digest = 6, .message = 1, .bytes = 8, .total = 8};
  Status problem;
  wait_until(*ranks[1], [&] {
    EXPECT_FALSE(ranks[1]->messages().receive(in, 0, received.data()));
    return !(problem = ranks[1]->check()).ok();
  });
  EXPECT_EQ(problem.code(), Code::invalid_usage);
  EXPECT_EQ(received, std::vector<std::byte>(8));
}

TEST_P(Message, may_be_in_memory_that_peers_can_map) {
  const auto data = pattern(5'000'000, 1);
  const auto memory = allocate_shared(data.size());
  ASSERT_TRUE(memory.ok()) << memory.status().message();
  auto* const shared = static_cast<std::byte*>(*memory);
  std::ranges::copy(data, shared);
  run(2, [&](int me, Transport& t) {
    std::vector<std::byte> received(data.size());
    MessageRunner runner(t);
    if (me == 0)
      runner.send(1, 1, 0, {shared, data.size()});
    else
      runner.receive(0, 1, 0, received);
    runner.run();
    EXPECT_EQ(received, me == 1 ? data : std::vector<std::byte>(data.size()));
  });
  EXPECT_TRUE(free_shared(shared).ok());
}

TEST_P(Message, to_a_dead_peer_is_never_settled) {
  Ranks ranks = make();
  const auto message = pattern(8, 1);
  ASSERT_EQ(ranks[0]->messages().send({.peer = Rank{1}, .message = 1, .bytes = 8, .total = 8},
                                      message.data()),
            Messages::Sent::copied);
  ranks[1].reset();
  wait_until(*ranks[0], [&] { return ranks[0]->state(Rank{1}) != PeerState::present; });
  EXPECT_FALSE(ranks[0]->messages().settled(Rank{1}));
  MessageRunner sender(*ranks[0]);
  sender.send(1, 2, 5, message);
  for (int i = 0; i < 1000; ++i) sender.advance();
  EXPECT_FALSE(sender.done());
  EXPECT_FALSE(ranks[0]->messages().send_at_once(Rank{1}, 5, message));
}

ANYCCL_ON_EACH_TRANSPORT(Peer);

CallRecord call(std::uint64_t sequence, std::uint64_t count) {
  CallRecord record;
  record.sequence = sequence;
  record.count = count;
  return record;
}

TEST_P(Peer, is_told_what_this_rank_called) {
  const Ranks ranks = make();
  ranks[0]->publications().announce(call(3, 70));
  CallRecord record;
  wait_until(*ranks[1], [&] {
    EXPECT_TRUE(ranks[0]->check().ok());
    return ranks[1]->call_of(Rank{0}, 3, record);
  });
  EXPECT_EQ(record, call(3, 70));
  EXPECT_FALSE(ranks[1]->call_of(Rank{0}, 2, record));
}

TEST_P(Peer, that_is_ahead_still_knows_its_last_calls) {
  const Ranks ranks = make();
  for (std::uint64_t s = 1; s <= kCallHistory + 1; ++s)
    ranks[0]->publications().announce(call(s, s));
  ranks[1]->publications().announce(call(4, 1000));
  CallRecord record;
  wait_until(*ranks[1], [&] {
    EXPECT_TRUE(ranks[0]->check().ok());
    return ranks[1]->call_of(Rank{0}, 4, record);
  });
  EXPECT_EQ(record, call(4, 4));
  EXPECT_FALSE(ranks[0]->call_of(Rank{0}, 1, record)) << "too long ago";
  EXPECT_TRUE(ranks[0]->call_of(Rank{0}, 2, record));
}

TEST_P(Peer, learns_who_aborted_and_why) {
  for (const Code code : {Code::aborted, Code::invalid_usage, Code::timeout}) {
    const Ranks ranks = make(3);
    ranks[1]->abort(error(code, "rank 1 had enough"));
    for (const std::size_t peer : {0UL, 2UL}) {
      const Status problem = wait_for_problem(*ranks[peer]);
      EXPECT_TRUE(problem.code() == code || problem.code() == Code::remote_error);
      EXPECT_NE(problem.message().find("rank 1 had enough"), std::string_view::npos)
          << problem.message();
    }
  }
}

TEST_P(Peer, that_aborts_has_published_what_it_published_before) {
  const Ranks ranks = make();
  publish_to(*ranks[0], 1, 1, 0, pattern(1000, 1));
  ranks[0]->abort(error(Code::aborted, "enough"));
  EXPECT_FALSE(wait_for_problem(*ranks[1]).ok());
  EXPECT_TRUE(equal(ranks[1]->publications().poll(from(0, 1, 0, 1000)), pattern(1000, 1)));
}

TEST_P(Peer, that_leaves_has_published_what_it_published_before) {
  Ranks ranks = make();
  publish_to(*ranks[0], 1, 1, 0, pattern(60'000, 1));
  EXPECT_EQ(ranks[1]->state(Rank{0}), PeerState::present);
  ranks[0]->leave();
  ranks[0].reset();
  wait_until(*ranks[1], [&] { return ranks[1]->state(Rank{0}) != PeerState::present; });
  EXPECT_EQ(ranks[1]->state(Rank{0}), PeerState::left);
  EXPECT_TRUE(equal(ranks[1]->publications().poll(from(0, 1, 0, 60'000)), pattern(60'000, 1)));
  EXPECT_TRUE(ranks[1]->check().ok());
}

TEST_P(Peer, that_goes_without_a_word_is_dead) {
  Ranks ranks = make();
  publish_to(*ranks[0], 1, 1, 0, pattern(60'000, 1));
  ranks[0].reset();
  wait_until(*ranks[1], [&] { return ranks[1]->state(Rank{0}) != PeerState::present; });
  EXPECT_EQ(ranks[1]->state(Rank{0}), PeerState::dead);
  EXPECT_TRUE(equal(ranks[1]->publications().poll(from(0, 1, 0, 60'000)), pattern(60'000, 1)));
}

TEST_P(Peer, may_leave_twice) {
  const Ranks ranks = make();
  ranks[0]->leave();
  ranks[0]->leave();
  wait_until(*ranks[1], [&] { return ranks[1]->state(Rank{0}) == PeerState::left; });
}

ANYCCL_ON_EACH_TRANSPORT(Sleeper);

TEST_P(Sleeper, is_woken_by_another_thread) {
  const Ranks ranks = make();
  const auto begin = Deadline::Clock::now();
  for (int i = 0; i < 20; ++i) {
    ranks[0]->prepare_sleep(Transport::Alarm::own);
    std::thread waker([&] { ranks[0]->wake(); });
    ranks[0]->sleep(std::chrono::seconds(30));
    waker.join();
  }
  EXPECT_LT(Deadline::Clock::now() - begin, std::chrono::seconds(15));
}

}  // namespace
}  // namespace anyccl
