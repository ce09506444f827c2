#include "platform/bootstrap/socket/wire.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <numeric>

#include "base/unique_fd.hpp"
#include "platform/bootstrap/rendezvous/frame_reader.hpp"
#include "ranks.hpp"

namespace anyccl::bootstrap {
namespace {

using namespace test;

class Wire : public testing::Test {
 protected:
  void SetUp() override {
    int pair[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    left_.reset(pair[0]);
    right_.reset(pair[1]);
  }
  UniqueFd left_, right_;
};

std::vector<std::byte> pattern(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 % 251);
  return bytes;
}

TEST_F(Wire, moves_more_than_the_socket_holds) {
  const std::vector<std::byte> sent = pattern(3 << 20);
  std::vector<std::byte> received(sent.size());
  in_threads(2, [&](int who) {
    if (who == 0) ASSERT_OK(send_all(left_.get(), sent, soon(), "peer"));
    if (who == 1) ASSERT_OK(recv_all(right_.get(), received, soon(), "peer"));
  });
  EXPECT_EQ(sent, received);
}

TEST_F(Wire, gives_up_at_the_deadline_and_names_the_peer) {
  std::byte one{};
  const Status s =
      recv_all(right_.get(), {&one, 1}, Deadline::in(std::chrono::milliseconds(5)), "rank 3");
  EXPECT_EQ(s.code(), Code::timeout);
  EXPECT_TRUE(contains(s.message(), "rank 3")) << s.message();
  const std::vector<std::byte> much = pattern(3 << 20);
  const Status t =
      send_all(left_.get(), much, Deadline::in(std::chrono::milliseconds(5)), "rank 3");
  EXPECT_EQ(t.code(), Code::timeout);
}

TEST_F(Wire, names_the_peer_that_closed) {
  left_.reset();
  std::byte one{};
  for (const Status& s : {recv_all(right_.get(), {&one, 1}, soon(), "rank 3"),
                          send_all(right_.get(), {&one, 1}, soon(), "rank 3")}) {
    EXPECT_EQ(s.code(), Code::remote_error);
    EXPECT_EQ(s.message(), "rank 3 closed the connection");
  }
}

TEST_F(Wire, inbox_takes_pieces_and_leaves_what_follows) {
  const std::vector<std::byte> sent = pattern(10);
  Inbox inbox;
  inbox.expect(6);
  ASSERT_OK(send_all(left_.get(), std::span(sent).first(4), soon(), "peer"));
  ASSERT_OK(inbox.fill(right_.get()));
  EXPECT_FALSE(inbox.full());
  ASSERT_OK(send_all(left_.get(), std::span(sent).subspan(4), soon(), "peer"));
  ASSERT_OK(inbox.fill(right_.get()));
  ASSERT_TRUE(inbox.full());
  EXPECT_TRUE(std::equal(inbox.bytes().begin(), inbox.bytes().end(), sent.begin()));
  std::vector<std::byte> rest(4);
  ASSERT_OK(recv_all(right_.get(), rest, soon(), "peer"));
  EXPECT_TRUE(std::equal(rest.begin(), rest.end(), sent.begin() + 6));
}

TEST_F(Wire, inbox_that_gave_its_message_away_reads_nothing) {
  ASSERT_OK(send_all(left_.get(), pattern(20), soon(), "peer"));
  Inbox inbox;
  inbox.expect(6);
  ASSERT_OK(inbox.fill(right_.get()));
  EXPECT_EQ(inbox.take().size(), 6U);
  ASSERT_OK(inbox.fill(right_.get()));
  EXPECT_TRUE(inbox.bytes().empty());
  std::vector<std::byte> rest(14);
  EXPECT_OK(recv_all(right_.get(), rest, soon(), "peer"));
}

TEST_F(Wire, frames_of_another_session_end_it) {
  const std::vector<std::byte> payload = pattern(sizeof(Left));
  const Result<FrameHeader> header = seal(Mac{std::byte{1}}, Frame::left, payload);
  ASSERT_OK(header.status());
  for (int twice = 0; twice < 2; ++twice) {
    ASSERT_OK(send_all(left_.get(), bytes_of(*header), soon(), "peer"));
    ASSERT_OK(send_all(left_.get(), payload, soon(), "peer"));
  }
  FrameReader reader(largest_report);
  for (int twice = 0; twice < 2; ++twice)
    EXPECT_EQ(reader.next(right_.get(), Mac{}, "rank 3").status().code(), Code::remote_error);
}

TEST_F(Wire, outbox_sends_its_own_bytes_and_then_the_shared_ones) {
  const auto shared = std::make_shared<const std::vector<std::byte>>(pattern(1 << 20));
  Outbox outbox;
  outbox.put(pattern(3));
  outbox.put_shared(shared);
  std::vector<std::byte> received(3 + shared->size());
  in_threads(2, [&](int who) {
    if (who == 1) ASSERT_OK(recv_all(right_.get(), received, soon(), "peer"));
    while (who == 0 && !outbox.empty()) {
      ASSERT_OK(outbox.flush(left_.get()));
      ASSERT_OK(wait_for(left_.get(), POLLOUT, soon(), "peer"));
    }
  });
  EXPECT_TRUE(std::equal(shared->begin(), shared->end(), received.begin() + 3));
}

}  // namespace
}  // namespace anyccl::bootstrap
