// These tests ask which receive gets which message, at one rank whose peers are played.

#include "framework/message/message_matcher.hpp"

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "support/ranks.hpp"
#include "unit/framework/scripted_peer.hpp"

namespace anyccl::test {
namespace {

using Request = std::shared_ptr<MessageRequest>;

constexpr Rank kMe{0}, kOne{1}, kTwo{2};

/// Rank 0 of 3.
struct MatcherOfThree : testing::Test {
  static Call message(Collective which, Rank peer, std::uint32_t tag,
                      std::span<std::uint8_t> bytes) {
    Call call;
    call.collective = which;
    call.dtype = DType::u8;
    call.root = peer;
    call.tag = tag;
    call.count = bytes.size();
    call.input = call.output = reinterpret_cast<std::byte*>(bytes.data());
    return call;
  }
  Request recv(Rank from, std::uint32_t tag, std::span<std::uint8_t> bytes,
               Gate gate = Gate::open) {
    return matcher.add(message(Collective::recv, from, tag, bytes), gate);
  }
  Request send(Rank to, std::uint32_t tag, std::span<std::uint8_t> bytes, Gate gate = Gate::open) {
    return matcher.add(message(Collective::send, to, tag, bytes), gate);
  }
  std::shared_ptr<Probe> probe(Rank from, std::uint32_t tag) {
    auto added = std::make_shared<Probe>(from, tag);
    matcher.add(added);
    return added;
  }
  static void say(ScriptedPeer& peer, std::uint32_t tag, std::uint8_t byte) {
    peer.say(tag, DType::u8, {std::byte{byte}});
  }
  void go_on() {
    while (matcher.advance()) {
    }
  }

  ScriptedPeer one, two;
  std::vector<Messages*> route{nullptr, &one, &two};
  MessageMatcher matcher{kMe, route};
  std::array<std::uint8_t, 1> x{}, y{};
};

TEST_F(MatcherOfThree, gives_a_message_to_the_receive_that_was_called_first) {
  const Request first = recv(kOne, 5, x), second = recv(kOne, 5, y);
  say(one, 5, 7);
  go_on();
  EXPECT_TRUE(first->done());
  EXPECT_FALSE(second->done());
  EXPECT_EQ(x[0], 7);
}

TEST_F(MatcherOfThree, passes_receives_with_another_tag) {
  const Request other = recv(kOne, 4, x), wanted = recv(kOne, 5, y);
  say(one, 5, 7);
  go_on();
  EXPECT_FALSE(other->done());
  EXPECT_TRUE(wanted->done());
}

TEST_F(MatcherOfThree, passes_receives_from_another_rank) {
  const Request other = recv(kTwo, 5, x), wanted = recv(kOne, 5, y);
  say(one, 5, 7);
  go_on();
  EXPECT_FALSE(other->done());
  EXPECT_TRUE(wanted->done());
}

TEST_F(MatcherOfThree, prefers_a_receive_from_anyone_that_was_called_before) {
  const Request anyone = recv(kAnySource, 5, x), named = recv(kOne, 5, y);
  say(one, 5, 7);
  go_on();
  ASSERT_TRUE(anyone->done());
  EXPECT_EQ(anyone->peer(), kOne);
  EXPECT_FALSE(named->done());
}

TEST_F(MatcherOfThree, prefers_a_receive_from_its_source_that_was_called_before) {
  const Request named = recv(kOne, 5, x), anyone = recv(kAnySource, 5, y);
  say(one, 5, 7);
  go_on();
  EXPECT_TRUE(named->done());
  EXPECT_FALSE(anyone->done());
  say(two, 5, 8);
  go_on();
  ASSERT_TRUE(anyone->done());
  EXPECT_EQ(anyone->peer(), kTwo);
}

TEST_F(MatcherOfThree, leaves_messages_that_nobody_wants_with_the_transport) {
  const Request other = recv(kTwo, 5, x);
  say(one, 5, 7);
  go_on();
  EXPECT_FALSE(one.was_heard());
  EXPECT_FALSE(other->done());
}

TEST_F(MatcherOfThree, keeps_a_message_that_comes_before_one_that_is_wanted) {
  const Request wanted = recv(kOne, 5, x);
  say(one, 4, 7);
  say(one, 5, 8);
  go_on();
  EXPECT_TRUE(one.was_heard());
  ASSERT_TRUE(wanted->done());
  EXPECT_EQ(x[0], 8);
  const Request later = recv(kOne, 4, y);
  go_on();
  ASSERT_TRUE(later->done());
  EXPECT_EQ(y[0], 7);
}

TEST_F(MatcherOfThree, gives_kept_messages_of_a_tag_in_the_order_of_their_sends) {
  recv(kOne, 5, x);
  say(one, 4, 7);
  say(one, 4, 8);
  say(one, 5, 0);
  go_on();
  const Request first = recv(kOne, 4, x), second = recv(kOne, 4, y);
  say(one, 4, 9);
  go_on();
  EXPECT_TRUE(first->done() && second->done());
  EXPECT_EQ(x[0], 7);
  EXPECT_EQ(y[0], 8);
}

TEST_F(MatcherOfThree, refuses_a_kept_message_of_another_size) {
  recv(kOne, 5, x);
  say(one, 4, 7);
  say(one, 5, 8);
  go_on();
  std::array<std::uint8_t, 2> larger{};
  const Request receive = recv(kOne, 4, larger);
  go_on();
  ASSERT_TRUE(receive->done());
  EXPECT_EQ(receive->status().code(), Code::invalid_usage);
  EXPECT_EQ(matcher.problem().message(), receive->status().message());
}

TEST_F(MatcherOfThree, lets_a_receive_behind_a_closed_gate_keep_its_place) {
  const Request first = recv(kOne, 5, x, Gate::closed), second = recv(kOne, 5, y);
  say(one, 5, 7);
  go_on();
  EXPECT_FALSE(second->done());
  first->open();
  go_on();
  EXPECT_TRUE(first->done());
  EXPECT_FALSE(second->done());
}

TEST_F(MatcherOfThree, brings_messages_of_a_rank_to_itself_together) {
  x[0] = 7;
  const Request sent = send(kMe, 5, x), received = recv(kMe, 5, y);
  EXPECT_FALSE(matcher.waits_for_peers());
  EXPECT_TRUE(matcher.will_meet_itself());
  go_on();
  EXPECT_TRUE(sent->done());
  ASSERT_TRUE(received->done());
  EXPECT_EQ(y[0], 7);
  EXPECT_FALSE(matcher.will_meet_itself());
}

TEST_F(MatcherOfThree, lets_a_message_to_itself_wait_for_a_receive_with_its_tag) {
  const Request sent = send(kMe, 5, x), other = recv(kMe, 4, y);
  go_on();
  EXPECT_FALSE(sent->done());
  EXPECT_FALSE(other->done());
  EXPECT_FALSE(matcher.will_meet_itself());
  const Request anyone = recv(kAnySource, 5, y);
  go_on();
  EXPECT_TRUE(sent->done());
  ASSERT_TRUE(anyone->done());
  EXPECT_EQ(anyone->peer(), kMe);
}

TEST_F(MatcherOfThree, sends_in_the_order_of_the_calls_as_soon_as_there_is_room) {
  x[0] = 7;
  y[0] = 8;
  const Request first = send(kOne, 5, x), second = send(kOne, 4, y);
  EXPECT_FALSE(first->done());
  one.listens = true;
  go_on();
  EXPECT_TRUE(first->done() && second->done());
  ASSERT_EQ(one.taken.size(), 2U);
  EXPECT_EQ(one.taken[0].bytes, Bytes{std::byte{7}});
  EXPECT_EQ(one.taken[1].bytes, Bytes{std::byte{8}});
}

TEST_F(MatcherOfThree, completes_a_synchronous_send_when_it_is_answered) {
  one.listens = true;
  Call call = message(Collective::send, kOne, 5, x);
  call.synchronous = true;
  const Request sent = matcher.add(call, Gate::open);
  go_on();
  EXPECT_EQ(one.taken.size(), 1U);
  EXPECT_FALSE(sent->done());
  one.say(message_digest::answer(1), {});
  go_on();
  EXPECT_TRUE(sent->done());
}

TEST_F(MatcherOfThree, answers_a_synchronous_message_when_it_meets_its_receive) {
  one.listens = true;
  one.say(message_digest::synchronous(message_digest::of(5, DType::u8)), {std::byte{7}});
  probe(kOne, 5);
  go_on();
  EXPECT_TRUE(one.taken.empty());
  const Request received = recv(kOne, 5, x);
  go_on();
  EXPECT_TRUE(received->done());
  ASSERT_EQ(one.taken.size(), 1U);
  EXPECT_EQ(one.taken[0].digest, message_digest::answer(1));
}

TEST_F(MatcherOfThree, shows_a_message_to_a_probe_and_leaves_it_to_a_receive) {
  const auto looks = probe(kAnySource, 5);
  say(two, 5, 7);
  go_on();
  ASSERT_TRUE(looks->done());
  EXPECT_EQ(looks->message().source, kTwo);
  EXPECT_EQ(looks->message().tag, 5U);
  EXPECT_EQ(looks->message().dtype, DType::u8);
  EXPECT_EQ(looks->message().count, 1U);
  matcher.remove(looks);
  EXPECT_FALSE(matcher.waits_for_peers());
  const Request received = recv(kTwo, 5, x);
  go_on();
  ASSERT_TRUE(received->done());
  EXPECT_EQ(x[0], 7);
}

TEST_F(MatcherOfThree, does_not_show_to_a_probe_what_a_receive_before_it_gets) {
  recv(kOne, 5, x, Gate::closed);
  const auto looks = probe(kOne, 5);
  say(one, 5, 7);
  go_on();
  EXPECT_FALSE(looks->done());
  one.say(5, DType::u8, Bytes(3));
  go_on();
  ASSERT_TRUE(looks->done());
  EXPECT_EQ(looks->message().count, 3U);
}

TEST_F(MatcherOfThree, completes_everything_when_it_ends) {
  const std::array<std::shared_ptr<Operation>, 5> open{
      recv(kOne, 5, x), recv(kAnySource, 5, x), send(kTwo, 5, y), send(kMe, 4, y), probe(kOne, 3)};
  EXPECT_TRUE(matcher.waits_for_peers());
  matcher.end(Status(Code::aborted, "enough"));
  for (const auto& operation : open) {
    ASSERT_TRUE(operation->done());
    EXPECT_EQ(operation->status().message(), "enough");
  }
  EXPECT_FALSE(matcher.waits_for_peers());
  EXPECT_FALSE(matcher.waits_for_anyone());
}

TEST_F(MatcherOfThree, completes_only_messages_to_itself_when_these_end) {
  const Request peers = recv(kOne, 5, x), anyone = recv(kAnySource, 5, x);
  const Request sent = send(kMe, 4, x), received = recv(kMe, 3, y);
  matcher.end_own(Status(Code::aborted, "enough"));
  EXPECT_TRUE(sent->done());
  EXPECT_TRUE(received->done());
  EXPECT_FALSE(peers->done());
  EXPECT_FALSE(anyone->done()) << "a peer may send to it";
}

TEST(MatcherOfOne, completes_receives_from_anyone_with_messages_to_itself) {
  const std::vector<Messages*> alone{nullptr};
  MessageMatcher matcher(kMe, alone);
  Call call;
  call.collective = Collective::recv;
  call.root = kAnySource;
  const Request anyone = matcher.add(call, Gate::open);
  EXPECT_FALSE(matcher.waits_for_peers());
  matcher.end_own(Status(Code::aborted, "enough"));
  EXPECT_TRUE(anyone->done());
}

TEST_F(MatcherOfThree, uses_a_request_again_that_nobody_else_has) {
  Request first = recv(kOne, 5, x);
  say(one, 5, 7);
  go_on();
  const MessageRequest* const object = first.get();
  matcher.recycle(std::move(first));
  const Request next = recv(kOne, 5, y);
  EXPECT_EQ(next.get(), object);
  EXPECT_FALSE(next->done());
  say(one, 5, 8);
  go_on();
  ASSERT_TRUE(next->done());
  EXPECT_EQ(y[0], 8);
}

TEST_F(MatcherOfThree, does_not_use_a_request_again_that_somebody_has) {
  const Request first = recv(kOne, 5, x);
  say(one, 5, 7);
  go_on();
  matcher.recycle(first);
  EXPECT_NE(recv(kOne, 5, y), first);
}

}  // namespace
}  // namespace anyccl::test
