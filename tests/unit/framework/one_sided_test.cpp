// Puts that a peer gets wrong: nothing is written outside of a window, whatever comes.

#include "framework/message/one_sided.hpp"

#include <algorithm>
#include <cstring>
#include <random>

#include "framework/message/message_matcher.hpp"
#include "support/ranks.hpp"
#include "unit/framework/scripted_peer.hpp"

namespace anyccl::test {
namespace {

/// Rank 0 of 2 with one window, between bytes that nobody may touch.
class Target : public testing::TestWithParam<bool> {
 protected:
  static constexpr std::size_t kGuard = 4096, kWindow = 3000;
  Target() : memory_(kGuard + kWindow + kGuard, std::byte{0xee}) {
    window_ = matcher_.one_sided().open_window(memory_.data() + kGuard, kWindow);
  }

  static Bytes message(const PutHeader& header, std::size_t bytes_behind) {
    Bytes bytes(sizeof header + bytes_behind, std::byte{7});
    std::memcpy(bytes.data(), &header, sizeof header);
    return bytes;
  }
  void put(const PutHeader& header, std::size_t bytes_behind) {
    peer_.say(kPutTag, DType::u8, message(header, bytes_behind));
  }
  Status problem() {
    for (int i = 0; i < 4; ++i) matcher_.advance();
    return matcher_.problem();
  }
  void expect_refused(const char* part) {
    const Status status = problem();
    EXPECT_FALSE(status.ok());
    for (const char* wanted : {"rank 1", "rank 0", part})
      EXPECT_NE(status.message().find(wanted), std::string::npos)
          << "no '" << wanted << "' in: " << status.message();
    EXPECT_TRUE(matcher_.waits_for_peers()) << "somebody has to look at the problem";
    expect_guarded();
    for (std::size_t i = 0; i < kWindow; ++i) ASSERT_EQ(memory_[kGuard + i], std::byte{0xee});
  }
  void expect_guarded() const {
    const Bytes guard(kGuard, std::byte{0xee});
    EXPECT_TRUE(std::equal(guard.begin(), guard.end(), memory_.begin())) << "before the window";
    EXPECT_TRUE(std::equal(guard.begin(), guard.end(), memory_.end() - kGuard)) << "behind it";
  }

  Bytes memory_;
  ScriptedPeer peer_{GetParam()};
  std::vector<Messages*> route_{nullptr, &peer_};
  MessageMatcher matcher_{Rank{0}, route_};
  std::uint32_t window_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Of, Target, testing::Bool(), [](const auto& eager) {
  return eager.param ? "messages_at_once" : "requests";
});

TEST_P(Target, gets_what_is_right) {
  put({.window = window_, .offset = 10, .bytes = 5}, 5);
  put({.window = window_, .offset = kWindow - 2000, .bytes = 2000}, 0);
  peer_.say(kPutBytesTag, DType::u8, Bytes(2000, std::byte{8}));
  put({}, 0);
  ASSERT_OK(problem());
  EXPECT_TRUE(peer_.was_heard());
  EXPECT_EQ(memory_[kGuard + 10], std::byte{7});
  EXPECT_EQ(memory_[kGuard + 15], std::byte{0xee});
  EXPECT_EQ(memory_[kGuard + kWindow - 1], std::byte{8});
  expect_guarded();
  const anycclWaitSignalDesc_t three{3, 1, 0, 0};
  OneSidedCall wait;
  wait.what = OneSidedCall::What::wait;
  wait.awaited = {&three, 1};
  EXPECT_EQ(matcher_.start(wait, Gate::open, 1), nullptr) << "all three are counted";
}

TEST_P(Target, refuses_a_window_that_is_not_there) {
  put({.window = window_ + 1, .bytes = 5}, 5);
  expect_refused("window 2");
}
TEST_P(Target, refuses_a_put_beyond_the_end) {
  put({.window = window_, .offset = kWindow - 4, .bytes = 5}, 5);
  expect_refused("has 3000 bytes");
}
TEST_P(Target, refuses_an_offset_that_wraps) {
  put({.window = window_, .offset = ~std::uint64_t{0} - 2, .bytes = 5}, 5);
  expect_refused("offset 18446744073709551613");
}
TEST_P(Target, refuses_a_length_that_wraps) {
  put({.window = window_, .offset = 1, .bytes = ~std::uint64_t{0}}, 0);
  expect_refused("offset 1");
}
TEST_P(Target, refuses_another_length_than_the_header_says) {
  put({.window = window_, .bytes = 5}, 6);
  expect_refused("wrong header");
}
TEST_P(Target, refuses_signals_that_do_not_exist) {
  put({.window = window_, .signal = kSignals, .bytes = 5}, 5);
  expect_refused("signal 256");
}
TEST_P(Target, refuses_contexts_that_do_not_exist) {
  put({.window = window_, .context = kContexts, .bytes = 5}, 5);
  expect_refused("context 16");
}
TEST_P(Target, refuses_bytes_for_no_window) {
  put({.bytes = 5}, 5);
  expect_refused("wrong header");
}
TEST_P(Target, refuses_a_message_that_is_no_header) {
  peer_.say(kPutTag, DType::u8, Bytes(3));
  expect_refused("without a header");
}
TEST_P(Target, refuses_a_message_that_is_too_long_for_a_header) {
  peer_.say(kPutTag, DType::u8, Bytes(kMostPutMessage + 1));
  expect_refused("without a header");
}
TEST_P(Target, refuses_a_header_of_another_type) {
  peer_.say(kPutTag, DType::f32, message({.window = window_, .bytes = 5}, 5));
  expect_refused("without a header");
}
TEST_P(Target, refuses_bytes_without_a_header) {
  peer_.say(kPutBytesTag, DType::u8, Bytes(2000));
  expect_refused("without a header");
}
TEST_P(Target, refuses_other_bytes_than_the_header_says) {
  put({.window = window_, .bytes = 2000}, 0);
  peer_.say(kPutBytesTag, DType::u8, Bytes(2001));
  expect_refused("sends something else (2001 bytes)");
}
TEST_P(Target, refuses_an_ordinary_message_in_place_of_the_bytes) {
  put({.window = window_, .bytes = 2000}, 0);
  peer_.say(5, DType::u8, Bytes(2000));
  expect_refused("sends something else");
}
TEST_P(Target, refuses_the_bytes_when_the_window_has_gone) {
  put({.window = window_, .bytes = 2000}, 0);
  ASSERT_OK(problem());
  const Status closed = matcher_.one_sided().close_window(window_);
  EXPECT_EQ(closed.code(), Code::remote_error);
  EXPECT_NE(closed.message().find("rank 1 is still putting into window 1"), std::string::npos);
  matcher_.one_sided().open_window(memory_.data(), 0);  // it goes on looking
  peer_.say(kPutBytesTag, DType::u8, Bytes(2000));
  expect_refused("window 1");
}

TEST_P(Target, leaves_messages_of_the_program_where_they_are) {
  peer_.say(5, DType::u8, Bytes(3));
  put({.window = window_, .bytes = 5}, 5);
  ASSERT_OK(problem());
  EXPECT_FALSE(peer_.was_heard());
  EXPECT_FALSE(matcher_.waits_for_peers());
}

/// Headers that are right in most parts, and messages in any order.
TEST_P(Target, survives_anything) {
  const unsigned seed = std::random_device{}();
  std::printf("  seed %u\n", seed);
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  const auto number = [&](std::uint64_t usual) {
    return below(4) != 0 ? below(usual) : random() >> below(64);
  };
  for (int round = 0; round < 5000; ++round) {
    ScriptedPeer peer(GetParam());
    const std::vector<Messages*> route{nullptr, &peer};
    MessageMatcher matcher(Rank{0}, route);
    matcher.one_sided().open_window(memory_.data() + kGuard, kWindow);
    for (std::uint64_t i = below(4); i < 4; ++i) {
      const PutHeader header{.window = static_cast<std::uint32_t>(number(3)),
                             .signal = static_cast<std::uint16_t>(number(kSignals)),
                             .context = static_cast<std::uint16_t>(number(kContexts)),
                             .offset = number(kWindow),
                             .bytes = number(kWindow)};
      Bytes bytes = message(header, header.bytes > kMostWithHeader ? below(8) / 7 : header.bytes);
      if (below(8) == 0) bytes.resize(below(kMostPutMessage + 10));
      peer.say(below(8) == 0 ? static_cast<std::uint32_t>(below(kPutBytesTag)) : kPutTag,
               below(8) == 0 ? DType::i8 : DType::u8, std::move(bytes));
      if (header.bytes > kMostWithHeader && header.bytes < 2 * kWindow && below(8) != 0)
        peer.say(kPutBytesTag, DType::u8, Bytes(header.bytes + below(8) / 7));
    }
    for (int i = 0; i < 4; ++i) matcher.advance();
    expect_guarded();
    ASSERT_FALSE(HasFailure());
  }
}

}  // namespace
}  // namespace anyccl::test
