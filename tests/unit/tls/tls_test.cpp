// Encrypted streams: what comes through, and what is noticed.

#include <poll.h>

#include "ends.hpp"

namespace anyccl {
namespace {

using namespace test;

TEST(Tls, carries_bytes_of_any_number_both_ways) {
  const auto ends = ready_ends();
  unsigned seed = 0;
  for (const std::size_t bytes : {1U, 100U, 16383U, 16384U, 16385U, 100000U, 3000000U})
    for (const auto& [from, to] : {std::pair(0, 1), std::pair(1, 0)}) {
      const Bytes sent = pattern(bytes, ++seed);
      EXPECT_EQ(
          pass(ends[static_cast<std::size_t>(from)], ends[static_cast<std::size_t>(to)], sent),
          sent);
    }
}

TEST(Tls, gathers_and_scatters_in_the_order_of_the_parts) {
  const auto ends = ready_ends();
  for (const std::size_t first : {0U, 1U, 48U, 16384U, 20000U})
    for (const std::size_t second : {0U, 1U, 16383U, 40000U}) {
      const Bytes sent = pattern(first + second, static_cast<unsigned>(first + second));
      auto* const data = const_cast<std::byte*>(sent.data());
      const iovec out[] = {{data, first}, {data + first, second}};
      ASSERT_EQ(ends[0].stream->write(ends[0].fd(), out), static_cast<ssize_t>(sent.size()));
      Bytes got(sent.size() + 1);
      std::size_t count = 0;
      while (count < sent.size()) {
        const std::size_t cut = std::max<std::size_t>(count, sent.size() / 3);
        const iovec in[] = {{got.data() + count, cut - count},
                            {got.data() + cut, got.size() - cut}};
        const ssize_t n = ends[1].stream->read(ends[1].fd(), in);
        ASSERT_TRUE(n > 0 || errno == EAGAIN);
        count += static_cast<std::size_t>(std::max<ssize_t>(n, 0));
        ASSERT_TRUE(ends[0].stream->flush(ends[0].fd()));
      }
      got.pop_back();
      EXPECT_EQ(got, sent);
    }
}

TEST(Tls, waits_for_a_peer_that_does_not_read) {
  const auto ends = ready_ends();
  const Bytes sent = pattern(std::size_t{4} << 20, 1);
  std::size_t taken = 0;
  for (ssize_t n = 1; n > 0; taken += static_cast<std::size_t>(std::max<ssize_t>(n, 0)))
    n = ends[0].write(std::span(sent).subspan(taken));
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_LT(taken, sent.size());
  EXPECT_GT(ends[0].stream->unsent(), 0U);
  Bytes got;
  while (got.size() < taken) {
    ASSERT_EQ(ends[1].read_into(got), 1);
    ASSERT_TRUE(ends[0].stream->flush(ends[0].fd()));
  }
  EXPECT_EQ(got, Bytes(sent.begin(), sent.begin() + static_cast<std::ptrdiff_t>(taken)));
  EXPECT_EQ(ends[0].stream->unsent(), 0U);
}

TEST(Tls, says_what_it_has_read_from_the_socket_and_not_given_away) {
  const auto ends = ready_ends();
  ASSERT_EQ(ends[0].write(pattern(100, 1)), 100);
  ASSERT_EQ(ends[0].write(pattern(100, 2)), 100);
  Bytes got(30);
  const iovec part{got.data(), got.size()};
  ASSERT_EQ(ends[1].stream->read(ends[1].fd(), {&part, 1}), 30);
  EXPECT_TRUE(ends[1].stream->holds_unread());
  pollfd entry{ends[1].fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&entry, 1, 0), 0);  // which is why it says so
  Bytes rest;
  ASSERT_EQ(ends[1].read_into(rest), 1);
  EXPECT_EQ(rest.size(), 170U);
  EXPECT_FALSE(ends[1].stream->holds_unread());
}

TEST(Tls, changes_its_keys) {
  std::array<std::size_t, 2> on_the_wire{};
  for (const bool often : {false, true}) {
    auto ends = ready_ends(often ? 3 : tls::kRecordsPerKey);
    std::array<Tap, 2> taps;
    for (std::size_t i = 0; i < 2; ++i) ends[i].stream->go_through(&taps[i]);
    for (unsigned i = 0; i < 300; ++i)
      for (const std::size_t from : {0U, 1U}) {
        const Bytes sent = pattern(50, i);
        ASSERT_EQ(pass(ends[from], ends[1 - from], sent), sent);
      }
    on_the_wire[often ? 1 : 0] = taps[0].sent.size();
  }
  constexpr std::size_t kKeyUpdate = 5 + 5 + 1 + 16;
  EXPECT_EQ(on_the_wire[1] - on_the_wire[0], 99 * kKeyUpdate);
}

TEST(Tls, shows_no_byte_of_the_payload) {
  constexpr std::string_view kText = "a pattern that anybody would recognise";
  Bytes sent;
  while (sent.size() < 50000)
    for (const char c : kText) sent.push_back(static_cast<std::byte>(c));
  auto ends = ready_ends();
  Tap tap;
  ends[0].stream->go_through(&tap);
  EXPECT_EQ(pass(ends[0], ends[1], sent), sent);
  EXPECT_GT(tap.sent.size(), sent.size());
  EXPECT_TRUE(has(sent, kText));
  EXPECT_FALSE(has(tap.sent, kText.substr(0, 8)));
}

TEST(Tls, encrypts_the_same_bytes_differently_each_time) {
  std::array<Bytes, 2> sent;
  for (Bytes& one : sent) {
    auto ends = ready_ends();
    Tap tap;
    ends[0].stream->go_through(&tap);
    EXPECT_EQ(pass(ends[0], ends[1], pattern(1000, 1)), pattern(1000, 1));
    one = tap.sent;
  }
  EXPECT_EQ(sent[0].size(), sent[1].size());
  EXPECT_NE(sent[0], sent[1]);
}

// --- a wire that somebody else has ---------------------------------------------------------------

/// What the reader gets, and its errno, if `change` is done to what the writer sends.
std::pair<Bytes, int> read_after(const std::function<void(Bytes&)>& change, const Bytes& bytes) {
  auto ends = ready_ends();
  Tap tap;
  tap.change = change;
  ends[0].stream->go_through(&tap);
  EXPECT_EQ(ends[0].write(bytes), static_cast<ssize_t>(bytes.size()));
  Bytes got;
  const int problem = ends[1].read_into(got) < 0 ? errno : 0;
  if (problem == EBADMSG) {
    EXPECT_STREQ(ends[1].stream->problem(), "data that failed the check of TLS");
  }
  Bytes more;
  EXPECT_EQ(ends[1].read_into(more) < 0 ? errno : 0, problem);  // It stays so.
  EXPECT_TRUE(more.empty());
  if (problem == EBADMSG) {  // And the writer hears of it.
    EXPECT_LT(ends[0].read_into(more), 0);
    EXPECT_STREQ(ends[0].stream->problem(),
                 "the alert that what reached it failed the check of TLS");
    EXPECT_LT(ends[0].write(bytes), 0);
    EXPECT_LT(ends[1].write(bytes), 0);
  }
  return {got, problem};
}

/// Wherever the bit is: in the header of a record, its payload, or what protects it.
TEST(Tls, notices_every_flipped_bit) {
  const Bytes sent = pattern(100, 1);
  for (std::size_t at = 0; at < 100 + 5 + 1 + 16; ++at) {
    const auto [got, problem] = read_after(
        [at](Bytes& bytes) {
          ASSERT_GT(bytes.size(), at);
          bytes[at] ^= std::byte{1} << (at % 8);
        },
        sent);
    EXPECT_TRUE(got.empty()) << at;
    // A length that grew is waited for, until more comes or the connection ends.
    EXPECT_TRUE(problem == EBADMSG || at == 3 || at == 4) << at;
  }
}

TEST(Tls, gives_only_what_comes_before_a_flipped_bit) {
  const Bytes sent = pattern(60000, 1);
  const auto [got, problem] = read_after([](Bytes& bytes) { bytes[40000] ^= std::byte{4}; }, sent);
  EXPECT_EQ(problem, EBADMSG);
  EXPECT_EQ(got, Bytes(sent.begin(), sent.begin() + 2 * 16384));
}

TEST(Tls, notices_a_repeated_record) {
  const Bytes sent = pattern(100, 1);
  const auto [got, problem] = read_after(
      [](Bytes& bytes) {
        const Bytes again = bytes;
        bytes.insert(bytes.end(), again.begin(), again.end());
      },
      sent);
  EXPECT_EQ(problem, EBADMSG);
  EXPECT_EQ(got, sent);
}

TEST(Tls, notices_a_missing_record) {
  const Bytes sent = pattern(40000, 1);
  const auto [got, problem] = read_after(
      [](Bytes& bytes) { bytes.erase(bytes.begin(), bytes.begin() + 5 + 16384 + 1 + 16); }, sent);
  EXPECT_EQ(problem, EBADMSG);
  EXPECT_TRUE(got.empty());
}

TEST(Tls, notices_plain_text) {
  const Bytes sent = pattern(100, 1);
  const auto [got, problem] = read_after([&](Bytes& bytes) { bytes = sent; }, sent);
  EXPECT_EQ(problem, EBADMSG);
  EXPECT_TRUE(got.empty());
}

TEST(Tls, refuses_the_records_of_another_connection) {
  Bytes recorded;
  for (int round = 0; round < 2; ++round) {
    auto ends = ready_ends();  // with the same key
    Tap tap;
    if (round == 1) tap.change = [&](Bytes& bytes) { bytes = recorded; };
    ends[0].stream->go_through(&tap);
    ASSERT_EQ(ends[0].write(pattern(100, 1)), 100);
    recorded = tap.sent;
    Bytes got;
    EXPECT_EQ(ends[1].read_into(got) < 0, round == 1);
    EXPECT_EQ(got.empty(), round == 1);
  }
}

TEST(Tls, gives_nothing_of_a_record_that_is_cut) {
  auto ends = ready_ends();
  Tap tap;
  tap.change = [](Bytes& bytes) { bytes.resize(bytes.size() - 1); };
  ends[0].stream->go_through(&tap);
  static_cast<void>(ends[0].write(pattern(100, 1)));
  Bytes got;
  EXPECT_EQ(ends[1].read_into(got), 1);
  ends[0].socket.reset();
  EXPECT_EQ(ends[1].read_into(got), 0);
  EXPECT_TRUE(got.empty());
}

TEST(Tls, ends_when_the_peer_closes_it) {
  const auto ends = ready_ends();
  ASSERT_EQ(ends[0].write(pattern(100, 1)), 100);
  ends[0].stream->close(ends[0].fd());
  Bytes got;
  EXPECT_EQ(ends[1].read_into(got), 0);
  EXPECT_EQ(got, pattern(100, 1));
  ASSERT_EQ(ends[1].write(pattern(50, 2)), 50);  // The other direction is open.
  got.clear();
  EXPECT_EQ(ends[0].read_into(got), 1);
  EXPECT_EQ(got, pattern(50, 2));
}

TEST(Tls, takes_nothing_more_for_a_peer_that_is_gone) {
  auto ends = ready_ends();
  ends[1].socket.reset();
  EXPECT_EQ(ends[0].write(pattern(100, 1)), 100);  // which was under way when that showed
  EXPECT_LT(ends[0].write(pattern(100, 1)), 0);
  EXPECT_EQ(errno, EPIPE);
}

}  // namespace
}  // namespace anyccl
