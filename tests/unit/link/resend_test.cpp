// What an end of a link keeps for the next connection.

#include "platform/link/resend.hpp"

#include <gtest/gtest.h>

namespace anyccl::link {
namespace {

struct NoLink final : Reconnects {
  bool lose(int) override { return true; }
  bool resume(std::uint64_t) override { return true; }
  void acknowledge() override {}
};

std::vector<std::byte> bytes(int first, int count) {
  std::vector<std::byte> all;
  for (int i = first; i < first + count; ++i) all.push_back(static_cast<std::byte>(i));
  return all;
}

TEST(Resend, gives_back_what_the_peer_has_not_received) {
  NoLink link;
  Resend resend(link);
  resend.note_sent(bytes(0, 10));
  EXPECT_EQ(resend.take_rest(4), bytes(4, 6));
  resend.note_sent(bytes(4, 6));  // over the next connection
  resend.note_sent(bytes(10, 5));
  EXPECT_TRUE(resend.note_acknowledged(6));
  EXPECT_EQ(resend.take_rest(6), bytes(6, 9));
}

TEST(Resend, forgets_what_the_peer_has_received) {
  NoLink link;
  Resend resend(link);
  EXPECT_TRUE(resend.is_settled());
  resend.note_sent(bytes(0, 10));
  for (const std::uint64_t received : {1U, 6U, 9U}) {
    EXPECT_TRUE(resend.note_acknowledged(received));
    EXPECT_FALSE(resend.is_settled());
  }
  EXPECT_TRUE(resend.note_acknowledged(3)) << "it was on its way when a later one was said";
  EXPECT_TRUE(resend.note_acknowledged(10));
  EXPECT_TRUE(resend.is_settled());
  EXPECT_EQ(resend.take_rest(9), std::nullopt);
  EXPECT_EQ(resend.take_rest(10), bytes(10, 0));
}

TEST(Resend, believes_nobody_who_has_received_more_than_was_sent) {
  NoLink link;
  Resend resend(link);
  resend.note_sent(bytes(0, 10));
  EXPECT_FALSE(resend.note_acknowledged(11));
  EXPECT_EQ(resend.take_rest(11), std::nullopt);
  EXPECT_EQ(resend.take_rest(0), bytes(0, 10));
}

TEST(Resend, owes_an_acknowledgement_now_and_then) {
  NoLink link;
  Resend resend(link);
  resend.note_came(100);
  EXPECT_FALSE(resend.owes_acknowledgement());
  resend.note_came(1 << 20);
  EXPECT_TRUE(resend.owes_acknowledgement());
  EXPECT_EQ(resend.tell(), (1U << 20) + 100);
  EXPECT_FALSE(resend.owes_acknowledgement());
}

}  // namespace
}  // namespace anyccl::link
