#include "platform/bootstrap/auth/handshake.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "base/unique_fd.hpp"
#include "ranks.hpp"

namespace anyccl::bootstrap {
namespace {

using namespace test;
using Recorded = std::vector<std::byte>;

struct Pair {
  Pair() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    connector.reset(ends[0]);
    acceptor.reset(ends[1]);
  }
  UniqueFd connector, acceptor;
};

/// Moves what has come at `from` to `to`, and keeps it.
void pass_on(int from, int to, Recorded& kept) {
  std::byte bytes[1024];
  for (ssize_t n = 0; (n = ::recv(from, bytes, sizeof bytes, 0)) > 0;) {
    ASSERT_EQ(::send(to, bytes, static_cast<std::size_t>(n), MSG_NOSIGNAL), n);
    kept.insert(kept.end(), bytes, bytes + n);
  }
}

class Replay : public testing::Test {
 protected:
  /// What a connector that knows the secret says to an acceptor that does, overheard between them.
  void SetUp() override {
    secret_ = *Secret::random();
    auto connector = Handshake::connector(secret_, 1, 0),
         acceptor = Handshake::acceptor(secret_, 0);
    ASSERT_TRUE(connector.ok() && acceptor.ok());
    const Pair left, right;  // a wire each, with the eavesdropper in between
    for (int i = 0; i < 10 && !(connector->done() && acceptor->done()); ++i) {
      ASSERT_OK(connector->advance(left.connector.get()));
      if (connector->proved()) ASSERT_OK(connector->send_proof());
      pass_on(left.acceptor.get(), right.connector.get(), said_by_connector_);
      ASSERT_OK(acceptor->advance(right.acceptor.get()));
      pass_on(right.connector.get(), left.acceptor.get(), said_by_acceptor_);
    }
    ASSERT_TRUE(connector->done() && acceptor->done());
  }
  Secret secret_;
  Recorded said_by_connector_, said_by_acceptor_;
};

TEST_F(Replay, of_a_connector_is_refused) {
  const Pair wire;
  auto acceptor = Handshake::acceptor(secret_, 0);
  ASSERT_EQ(::send(wire.connector.get(), said_by_connector_.data(), said_by_connector_.size(), 0),
            static_cast<ssize_t>(said_by_connector_.size()));
  EXPECT_EQ(acceptor->advance(wire.acceptor.get()).code(), Code::invalid_argument);
  EXPECT_FALSE(acceptor->done());
}

TEST_F(Replay, of_an_acceptor_is_refused) {
  const Pair wire;
  auto connector = Handshake::connector(secret_, 1, 0);
  ASSERT_EQ(::send(wire.acceptor.get(), said_by_acceptor_.data(), said_by_acceptor_.size(), 0),
            static_cast<ssize_t>(said_by_acceptor_.size()));
  EXPECT_EQ(connector->advance(wire.connector.get()).code(), Code::invalid_argument);
  EXPECT_FALSE(connector->committed());
}

TEST(Handshake, knows_a_stranger_by_its_first_bytes) {
  for (const std::string_view said : {"GET / HTTP/1.0\r\n\r\n", "anyccl!", "\n"}) {
    const Pair wire;
    auto acceptor = Handshake::acceptor(Secret(), 0);
    ASSERT_OK(send_all(wire.connector.get(), std::as_bytes(std::span(said)), soon(), "acceptor"));
    EXPECT_EQ(acceptor->advance(wire.acceptor.get()).code(), Code::invalid_argument) << said;
  }
}

TEST(Handshake, waits_for_the_rest_of_a_greeting) {
  const Pair wire;
  auto acceptor = Handshake::acceptor(Secret(), 0);
  ASSERT_OK(acceptor->advance(wire.acceptor.get()));
  const std::string_view begin = "anyccl?";
  ASSERT_OK(send_all(wire.connector.get(), std::as_bytes(std::span(begin)), soon(), "acceptor"));
  EXPECT_OK(acceptor->advance(wire.acceptor.get()));
}

}  // namespace
}  // namespace anyccl::bootstrap
