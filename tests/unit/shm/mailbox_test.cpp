// How far the sender of messages may be ahead of their receiver.

#include "platform/transports/shm/layout.hpp"
#include "unit/shm/pair_of_ranks.hpp"

namespace anyccl::shm {
namespace {

constexpr std::size_t kShort = 8, kLong = kFragmentBytes, kTooLong = 64 * kLong;

/// Messages of `bytes` bytes from rank 0 to rank 1 that go before anything is received.
int sent_at_once(Transport& t, std::size_t bytes) {
  const std::vector<std::byte> message(bytes);
  int sent = 0;
  while (sent < 100 && t.messages().send_at_once(Rank{1}, 0, message)) ++sent;
  return sent;
}

/// Fragments of one message of `bytes` bytes.
int fragments_sent(Transport& t, std::size_t bytes) {
  const std::vector<std::byte> memory(bytes);
  Fragment out{
      .peer = Rank{1}, .message = 1, .bytes = t.messages().fragment_bytes(), .total = bytes};
  while (out.number < 100 && t.messages().send(out, memory.data()) == Messages::Sent::copied)
    ++out.number;
  return static_cast<int>(out.number);
}

bool receive(Transport& t, std::size_t bytes) {
  std::vector<std::byte> message(bytes);
  return t.messages().receive_at_once(Rank{0}, 0, 1, message);
}

TEST(Sender, with_a_core_of_its_own_fills_all_slots) {
  for (const std::size_t bytes : {kShort, kLong})
    EXPECT_EQ(sent_at_once(*test::make_pair_of_ranks()[0], bytes), kMailboxSlots) << bytes;
}

TEST(Sender, on_a_shared_core_is_few_messages_ahead) {
  for (const auto& [bytes, ahead] : {std::pair{kShort, 3}, std::pair{kLong, 2}}) {
    const auto ranks = test::make_pair_of_ranks(true);
    EXPECT_EQ(sent_at_once(*ranks[0], bytes), ahead) << bytes;
    ASSERT_TRUE(receive(*ranks[1], bytes));
    EXPECT_EQ(sent_at_once(*ranks[0], bytes), 1) << bytes;
  }
}

TEST(Sender, on_a_shared_core_sends_whole_messages_if_the_slots_allow_it) {
  EXPECT_EQ(fragments_sent(*test::make_pair_of_ranks(true)[0], 5 * kLong), 5);
  EXPECT_EQ(fragments_sent(*test::make_pair_of_ranks(true)[0], kTooLong), kMailboxSlots);
}

}  // namespace
}  // namespace anyccl::shm
