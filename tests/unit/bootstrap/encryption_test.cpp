// Ranks that meet and encrypt their connections from the beginning.

#include <poll.h>
#include <sys/socket.h>

#include <optional>

#include "platform/bootstrap/auth/handshake.hpp"
#include "ranks.hpp"

namespace anyccl::bootstrap {
namespace {

using namespace test;

/// Both ends of a handshake in one thread.
struct TwoEnds {
  TwoEnds(const Secret& secret, bool connector_encrypts, bool acceptor_encrypts) {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    connector_socket.reset(ends[0]);
    acceptor_socket.reset(ends[1]);
    connector.emplace(*Handshake::connector(secret, 1, 0, connector_encrypts));
    acceptor.emplace(*Handshake::acceptor(secret, 0, {}, acceptor_encrypts));
  }
  void run() {
    for (int i = 0; i < 10; ++i) {
      if (connector_problem.ok()) connector_problem = connector->advance(connector_socket.get());
      if (connector->proved()) EXPECT_OK(connector->send_proof());
      if (acceptor_problem.ok()) acceptor_problem = acceptor->advance(acceptor_socket.get());
    }
  }
  UniqueFd connector_socket, acceptor_socket;
  std::optional<Handshake> connector, acceptor;
  Status connector_problem, acceptor_problem;
};

void expect_passes(SecureStream& from, int from_fd, SecureStream& to, int to_fd) {
  char sent[] = "sixteen letters.", got[sizeof sent] = {};
  const iovec out{sent, sizeof sent}, in{got, sizeof got};
  ASSERT_EQ(from.write(from_fd, {&out, 1}), static_cast<ssize_t>(sizeof sent));
  ASSERT_EQ(to.read(to_fd, {&in, 1}), static_cast<ssize_t>(sizeof sent));
  EXPECT_STREQ(got, sent);
}

TEST(Encryption, begins_when_both_have_proved_that_they_know_the_secret) {
  TwoEnds two(*Secret::random(), true, true);
  two.run();
  ASSERT_OK(two.connector_problem);
  ASSERT_OK(two.acceptor_problem);
  ASSERT_TRUE(two.connector->done() && two.acceptor->done());
  EXPECT_EQ(two.connector->session(), two.acceptor->session());
  const auto a = two.connector->take_stream(), b = two.acceptor->take_stream();
  ASSERT_TRUE(a != nullptr && b != nullptr);
  expect_passes(*a, two.connector_socket.get(), *b, two.acceptor_socket.get());
  expect_passes(*b, two.acceptor_socket.get(), *a, two.connector_socket.get());
}

TEST(Encryption, is_not_there_unless_asked_for) {
  TwoEnds two(*Secret::random(), false, false);
  two.run();
  ASSERT_TRUE(two.connector->done() && two.acceptor->done());
  EXPECT_EQ(two.connector->take_stream(), nullptr);
  EXPECT_EQ(two.acceptor->take_stream(), nullptr);
}

/// Neither end believes that the other one has to be talked to in plain text because it does so.
TEST(Encryption, is_not_given_up_for_a_peer_that_does_not_encrypt) {
  for (const bool connector_encrypts : {false, true}) {
    TwoEnds two(*Secret::random(), connector_encrypts, !connector_encrypts);
    two.run();
    Handshake& strict = connector_encrypts ? *two.connector : *two.acceptor;
    const int plain_end =
        connector_encrypts ? two.acceptor_socket.get() : two.connector_socket.get();
    const int strict_end =
        connector_encrypts ? two.connector_socket.get() : two.acceptor_socket.get();
    EXPECT_FALSE(strict.done());
    ASSERT_OK(send_all(plain_end, std::vector<std::byte>(100), soon(), "peer"));
    const Status status = strict.advance(strict_end);
    EXPECT_EQ(status.code(), Code::remote_error);
    EXPECT_TRUE(contains(status.message(), "TLS handshake")) << status.message();
    EXPECT_FALSE(strict.done());
  }
}

class Connections : public testing::TestWithParam<bool> {};

TEST_P(Connections, are_encrypted_over_the_network_and_plain_within_a_host) {
  const bool force_tcp = GetParam();
  std::vector<Member> members;
  std::vector<Hello> hellos;
  constexpr int kRanks = 4;
  for (int r = 0; r < kRanks; ++r) {
    members.push_back(make_member(r, kRanks));
    hellos.push_back(members.back().hello);
  }
  const Secret secret = *Secret::random();
  in_threads(kRanks, [&](int rank) {
    const auto peers = connect_all(members[static_cast<std::size_t>(rank)].listeners, hellos,
                                   Rank{rank}, secret, force_tcp, soon(), nullptr, {}, true);
    ASSERT_OK(peers.status());
    ASSERT_EQ(peers->size(), static_cast<std::size_t>(kRanks - 1));
    for (const PeerSocket& peer : *peers) {
      EXPECT_EQ(peer.local, !force_tcp);
      EXPECT_EQ(peer.secure != nullptr, force_tcp);
      if (peer.secure == nullptr) continue;
      EXPECT_TRUE(peer.secure->is_ready());
      const iovec mine{&rank, sizeof rank};
      EXPECT_EQ(peer.secure->write(peer.fd.get(), {&mine, 1}), static_cast<ssize_t>(sizeof rank));
      int other = -1;
      const iovec theirs{&other, sizeof other};
      while (peer.secure->read(peer.fd.get(), {&theirs, 1}) < 0)
        ASSERT_OK(wait_for(peer.fd.get(), POLLIN, soon(), "peer"));
      EXPECT_EQ(other, index(peer.rank));
    }
  });
}
INSTANTIATE_TEST_SUITE_P(Sockets, Connections, testing::Bool(),
                         [](const auto& tested) { return tested.param ? "tcp" : "unix"; });

}  // namespace
}  // namespace anyccl::bootstrap
