#include "platform/link/chaos.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "base/unique_fd.hpp"

namespace anyccl::link {
namespace {

ChaosPlan plan(const char* text) {
  return *ChaosPlan::parse(text);
}

std::vector<int> copies(const ChaosPlan& plan) {
  Chaos chaos(plan);
  std::vector<int> all(1000);
  for (int& one : all) one = chaos.roll_copies();
  return all;
}

/// `bytes` zeros as they are after they were read in pieces of `piece`.
std::vector<std::byte> read_in_pieces(const ChaosPlan& plan, std::size_t bytes, std::size_t piece) {
  Chaos chaos(plan);
  std::vector<std::byte> all(bytes);
  for (std::size_t at = 0; at < bytes; at += piece) {
    const std::size_t here = std::min(piece, bytes - at);
    const iovec parts[] = {{all.data() + at, here / 3}, {all.data() + at + here / 3, bytes}};
    chaos.has_read(parts, here);
  }
  return all;
}

TEST(Chaos, is_the_same_for_a_seed) {
  const ChaosPlan one = plan("seed=1,drop=0.1,duplicate=0.1");
  EXPECT_EQ(copies(one), copies(one));
  EXPECT_NE(copies(one), copies(plan("seed=2,drop=0.1,duplicate=0.1")));
}

TEST(Chaos, happens_as_often_as_it_says) {
  const std::vector<int> all = copies(plan("drop=0.1,duplicate=0.2"));
  EXPECT_NEAR(static_cast<double>(std::count(all.begin(), all.end(), 0)), 100, 40);
  EXPECT_NEAR(static_cast<double>(std::count(all.begin(), all.end(), 2)), 180, 50);
}

TEST(Chaos, flips_the_same_bits_whatever_is_read_at_once) {
  const ChaosPlan one = plan("seed=3,corrupt=0.001");
  const std::vector<std::byte> whole = read_in_pieces(one, 100'000, 100'000);
  EXPECT_NE(whole, std::vector<std::byte>(whole.size()));
  for (const std::size_t piece : {1U, 7U, 1000U})
    EXPECT_EQ(read_in_pieces(one, 100'000, piece), whole);
}

TEST(Chaos, holds_back_only_after_a_delay) {
  Chaos never(plan("partial=1")), always(plan("delay=1:1000s"));
  const iovec nothing{};
  never.has_read({&nothing, 1}, 0);
  always.has_read({&nothing, 1}, 0);
  EXPECT_FALSE(never.holds_back());
  EXPECT_TRUE(always.holds_back());
}

TEST(Chaos, holds_back_nothing_of_a_peer_that_takes_nothing_more) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const UniqueFd mine(ends[0]);
  ASSERT_EQ(::close(ends[1]), 0);
  Chaos chaos(plan("delay=1:1000s"));
  char byte = 0;
  iovec part{&byte, 1};
  chaos.has_read({&part, 1}, 1);
  EXPECT_TRUE(chaos.holds_back());
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  EXPECT_LT(chaos.write(mine.get(), message), 0);
  EXPECT_FALSE(chaos.holds_back());
}

}  // namespace
}  // namespace anyccl::link
