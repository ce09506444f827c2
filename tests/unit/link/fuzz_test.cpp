#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <thread>

#include "platform/link/flow.hpp"
#include "platform/link/frame.hpp"
#include "support.hpp"

namespace anyccl {
namespace {

using namespace test;
using link::FrameHeader;

using Bytes = std::vector<std::byte>;

void append(Bytes& stream, const FrameHeader& header, std::span<const std::byte> payload) {
  const auto head = std::as_bytes(std::span(&header, 1));
  stream.insert(stream.end(), head.begin(), head.end());
  stream.insert(stream.end(), payload.begin(), payload.end());
}

FrameHeader header_of(link::FrameType type, std::size_t bytes, std::uint32_t number = 0) {
  FrameHeader header;
  header.type = type;
  header.bytes = static_cast<std::uint32_t>(bytes);
  header.operation = type == link::kData ? 1 : 0;
  header.number = number;
  return header;
}

Incoming wanted(std::uint32_t number, std::size_t bytes) {
  Incoming in;
  in.operation = 1;
  in.number = number;
  in.rank = 1;
  in.bytes = in.whole = bytes;
  return in;
}

/// Data, a record, more data, goodbye.
Bytes good_stream() {
  Bytes stream;
  append(stream, header_of(link::kData, 100, 0), pattern(100, 0));
  append(stream, header_of(link::kCall, sizeof(CallRecord)), pattern(sizeof(CallRecord), 1));
  append(stream, header_of(link::kData, 0, 1), {});
  append(stream, header_of(link::kData, 50, 2), pattern(50, 2));
  append(stream, header_of(link::kGoodbye, 0), {});
  return stream;
}

TEST(SocketFrames, that_are_malformed_are_an_error_of_their_rank) {
  std::vector<FrameHeader> bad(8);
  bad[0].magic = 0x1234;
  bad[1].type = 99;
  bad[2].flags = 0x80;
  bad[3].bytes = std::uint32_t{1} << 31;
  bad[4] = header_of(link::kCall, 31);
  bad[5] = header_of(link::kGoodbye, 1);
  bad[6] = header_of(link::kAbort, 5000);
  bad[7] = header_of(link::kAbort, 3);
  for (const FrameHeader& header : bad) {
    const BarePeer peer;
    peer.send_object(header);
    const Status problem = wait_for_problem(*peer.transport);
    EXPECT_EQ(problem.code(), Code::remote_error);
    EXPECT_NE(problem.message().find("rank 1 sent "), std::string_view::npos) << problem.message();
    EXPECT_EQ(peer.transport->state(Rank{1}), PeerState::dead);
  }
}

/// A peer cannot keep memory here for as many as it likes, also not for those that it ends at once.
TEST(SocketFrames, of_too_many_communicators_are_malformed) {
  const BarePeer peer;
  FrameHeader header = header_of(link::kGoodbye, 0);
  for (header.context = 1000; header.context < 1000 + 4096; ++header.context) {
    peer.send_object(header);
    ASSERT_TRUE(peer.transport->check().ok()) << header.context;
  }
  peer.send_object(header);
  EXPECT_EQ(wait_for_problem(*peer.transport).code(), Code::remote_error);
}

TEST(SocketFrames, of_more_bytes_than_their_message_are_malformed) {
  const BarePeer peer;
  FrameHeader header = header_of(link::kData, 100);
  header.flags = link::kSized;
  header.total = 99;
  peer.send_object(header);
  EXPECT_EQ(wait_for_problem(*peer.transport).code(), Code::remote_error);
}

TEST(SocketFrames, may_not_come_twice) {
  const BarePeer peer;
  peer.send_object(header_of(link::kData, 0));
  peer.send_object(header_of(link::kData, 0));
  EXPECT_EQ(wait_for_problem(*peer.transport).code(), Code::remote_error);
}

/// As a peer says that has consumed a frame twice.
TEST(SocketFrames, may_not_give_credit_for_more_than_was_sent) {
  for (const link::FrameType type : {link::kData, link::kCredit}) {
    const BarePeer peer;
    constexpr std::size_t kBytes = 50;
    publish_to(*peer.transport, 1, number_of(1), pattern(kBytes, 1));
    FrameHeader header = header_of(type, 0);
    header.credit = link::Window::cost_of(kBytes);
    peer.send_object(header);
    for (int i = 0; i < 100; ++i) EXPECT_TRUE(peer.transport->check().ok());
    ++header.number;
    ++header.credit;
    peer.send_object(header);
    const Status problem = wait_for_problem(*peer.transport);
    EXPECT_EQ(problem.code(), Code::remote_error);
    EXPECT_NE(problem.message().find("read more than it was sent"), std::string_view::npos)
        << problem.message();
  }
}

TEST(SocketWindow, has_as_much_room_as_is_not_under_way) {
  link::Window window;
  const std::size_t kMost = link::Window::kBytes - link::Window::cost_of(0);
  window.note_sent({1, 0}, 100);
  EXPECT_FALSE(window.has_room({1, 1}, kMost));
  EXPECT_FALSE(window.take_credit(link::Window::cost_of(100) + 1));
  EXPECT_FALSE(window.has_room({1, 1}, kMost));
  EXPECT_TRUE(window.has_room({1, 1}, kMost - link::Window::cost_of(100)));
  EXPECT_TRUE(window.take_credit(link::Window::cost_of(100)));
  EXPECT_TRUE(window.has_room({1, 1}, kMost));
}

TEST(SocketFrames, may_not_come_after_a_goodbye) {
  const BarePeer peer;
  peer.send_object(header_of(link::kGoodbye, 0));
  peer.send_object(header_of(link::kData, 0));
  EXPECT_EQ(wait_for_problem(*peer.transport).code(), Code::remote_error);
}

TEST(SocketFrames, do_not_pile_up_notices_that_nobody_takes) {
  const BarePeer peer;
  const std::vector<FrameHeader> some(512, header_of(link::kNotice, 0));
  Status problem;
  for (int i = 0; i < 33 && problem.ok(); ++i) {
    peer.send(std::as_bytes(std::span(some)));
    problem = peer.transport->check();
  }
  EXPECT_EQ(problem.code(), Code::remote_error);
  EXPECT_NE(problem.message().find("notices"), std::string_view::npos) << problem.message();
}

/// A peer that sends nothing else keeps no thread.
TEST(SocketFrames, of_control_are_read_some_at_a_time) {
  const BarePeer peer;
  std::vector<FrameHeader> flood(2000, header_of(link::kCredit, 0));
  flood.back().magic = 0x1234;
  peer.send(std::as_bytes(std::span(flood)));
  EXPECT_TRUE(peer.transport->check().ok());
  EXPECT_EQ(wait_for_problem(*peer.transport).code(), Code::remote_error);
}

TEST(SocketFrames, arrive_whole_however_the_stream_is_cut) {
  const Bytes stream = good_stream();
  for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
    const BarePeer peer;
    peer.send(std::span(stream).first(cut));
    ASSERT_TRUE(peer.transport->check().ok()) << cut;
    (void)peer.transport->publications().poll(wanted(0, 100));
    peer.send(std::span(stream).subspan(cut));
    for (const auto& [number, bytes] : {std::pair{0U, 100U}, {1U, 0U}, {2U, 50U}})
      ASSERT_TRUE(equal(await(*peer.transport, wanted(number, bytes)), pattern(bytes, number)))
          << cut;
    ASSERT_TRUE(peer.transport->check().ok()) << cut;
    ASSERT_EQ(peer.transport->state(Rank{1}), PeerState::left) << cut;
  }
}

TEST(SocketFrames, that_end_early_are_death) {
  const Bytes stream = good_stream();
  for (std::size_t cut = 0; cut < stream.size(); ++cut) {
    BarePeer peer;
    peer.send(std::span(stream).first(cut));
    peer.socket.reset();
    ASSERT_TRUE(peer.transport->check().ok()) << cut;
    ASSERT_EQ(peer.transport->state(Rank{1}), PeerState::dead) << cut;
  }
}

/// Sends `stream`, closes, and reads it with polls, checks and sleeps in any order. Nothing may
/// crash, and the end must be seen.
void read_anything(const Bytes& stream, std::mt19937& random) {
  BarePeer peer;
  std::thread sender([&] {
    (void)::send(peer.socket.get(), stream.data(), stream.size(), MSG_NOSIGNAL);
    peer.socket.reset();
  });
  Transport& t = *peer.transport;
  Bytes place(4096);
  bool ended = false;
  for (const Deadline d = patience(); !ended && !d.passed();) {
    Incoming in = wanted(random() % 4, random() % 2 == 0 ? 100 : random() % 4096);
    if (random() % 2 == 0) in.into = place.data();
    if (t.publications().poll(in) != nullptr && random() % 2 == 0) t.publications().consumed(in);
    if (random() % 4 == 0) t.sleep(std::chrono::microseconds(10));
    CallRecord record;
    if (random() % 4 == 0) (void)t.call_of(Rank{1}, random() % 10, record);
    ended = random() % 4 == 0 && (!t.check().ok() || t.state(Rank{1}) != PeerState::present);
  }
  EXPECT_TRUE(ended);
  sender.join();
}

unsigned seed() {
  static const unsigned chosen = std::random_device{}();
  std::printf("  seed %u\n", chosen);
  return chosen;
}

TEST(SocketFrames, of_random_bytes_do_no_harm) {
  std::mt19937 random(seed());
  for (int round = 0; round < 300; ++round) {
    Bytes stream(random() % 2000);
    for (std::byte& b : stream) b = static_cast<std::byte>(random());
    read_anything(stream, random);
  }
}

TEST(SocketFrames, that_are_damaged_do_no_harm) {
  std::mt19937 random(seed());
  const Bytes good = good_stream();
  for (int round = 0; round < 1000; ++round) {
    Bytes stream = good;
    for (unsigned n = random() % 4; n-- > 0;)
      stream[random() % stream.size()] = static_cast<std::byte>(random());
    stream.resize(random() % 4 == 0 ? random() % (stream.size() + 1) : stream.size());
    read_anything(stream, random);
  }
}

}  // namespace
}  // namespace anyccl
