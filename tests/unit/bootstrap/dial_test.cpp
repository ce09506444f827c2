// How a connection is found among several addresses, of which some lead nowhere or to others.

#include "platform/bootstrap/auth/dial.hpp"

#include <gtest/gtest.h>

#include "platform/bootstrap/auth/acceptor.hpp"
#include "platform/bootstrap/socket/interfaces.hpp"
#include "ranks.hpp"

namespace anyccl::bootstrap {
namespace {

using namespace test;

constexpr Address kHere{4, 0, 0, {127, 0, 0, 1}};

/// An address whose packets vanish: the kernel drops what comes to a listener with a full queue.
class Hole {
 public:
  Hole() {
    Result<TcpListener> listener = listen_tcp(kHere);
    listener_ = *std::move(listener);
    EXPECT_EQ(::listen(listener_.socket.get(), 0), 0);
    for (UniqueFd& socket : full_) {
      socket = *open_socket(endpoint());
      EXPECT_OK(start_connect(socket.get(), endpoint()));
    }
  }
  Endpoint endpoint() const { return {"", listener_.address}; }

 private:
  TcpListener listener_;
  std::array<UniqueFd, 4> full_;
};

/// An acceptor at some addresses, as rank 0.
class Host {
 public:
  explicit Host(std::size_t addresses, const Secret& secret, std::uint32_t rank = 0) {
    std::vector<Acceptor::Listener> entries;
    for (std::size_t i = 0; i < addresses; ++i) {
      listeners_.push_back(*listen_tcp(kHere));
      entries.push_back({listeners_.back().socket.get(), false});
    }
    acceptor_.emplace(entries, secret, rank, Trust::secret);
  }
  std::vector<Endpoint> endpoints() const {
    std::vector<Endpoint> endpoints;
    for (const TcpListener& listener : listeners_) endpoints.push_back({"", listener.address});
    return endpoints;
  }
  Acceptor& acceptor() { return *acceptor_; }
  /// Whatever has come, without waiting.
  Status look() {
    std::vector<pollfd> entries;
    acceptor_->append_wanted(entries);
    ::poll(entries.data(), entries.size(), 0);
    return acceptor_->progress(entries);
  }

 private:
  std::vector<TcpListener> listeners_;
  std::optional<Acceptor> acceptor_;
};

void wait_for_events(const Dial& dial, int most_ms = 10) {
  std::vector<pollfd> entries;
  dial.append_wanted(entries);
  ::poll(entries.data(), entries.size(), dial.poll_ms(most_ms));
}

std::size_t attempts_of(const Dial& dial) {
  std::vector<pollfd> entries;
  dial.append_wanted(entries);
  return entries.size();
}

/// Both ends go on until there is a connection.
void finish(Dial& dial, Host& host) {
  for (const Deadline deadline = soon(); !dial.done();) {
    ASSERT_FALSE(deadline.passed()) << dial.problems();
    ASSERT_OK(dial.advance());
    ASSERT_OK(host.look());
    if (!dial.done()) wait_for_events(dial, 1);
  }
}

void expect_joined(Connection left, const Connection& right) {
  const std::uint32_t number = 4711;
  ASSERT_OK(send_all(left.socket.get(), bytes_of(number), soon(), "the acceptor"));
  std::uint32_t got = 0;
  ASSERT_OK(recv_all(right.socket.get(), std::as_writable_bytes(std::span(&got, 1)), soon(),
                     "the connector"));
  EXPECT_EQ(got, number);
}

class DialTest : public testing::Test {
 protected:
  Dial dial_to(std::vector<Endpoint> endpoints) {
    return Dial(secret_, {std::move(endpoints), 1, 0});
  }
  Secret secret_ = *Secret::random();
};

TEST_F(DialTest, does_not_wait_for_an_address_whose_packets_vanish) {
  const Hole hole;
  Host host(1, secret_);
  Dial dial = dial_to({hole.endpoint(), host.endpoints()[0]});
  const auto begin = Deadline::Clock::now();
  finish(dial, host);
  EXPECT_LT(Deadline::Clock::now() - begin, std::chrono::milliseconds(2900));  // its time is 3 s
}

TEST_F(DialTest, goes_on_at_once_when_an_address_refuses) {
  const Address closed = listen_tcp(kHere)->address;
  Host host(1, secret_);
  Dial dial = dial_to({{"", closed}, host.endpoints()[0]});
  ASSERT_OK(dial.advance());
  EXPECT_EQ(attempts_of(dial), 1U);
  EXPECT_TRUE(contains(dial.problems(), to_string(host.endpoints()[0]) + ": it accepted"))
      << dial.problems();
  finish(dial, host);
}

TEST_F(DialTest, is_refused_when_nobody_listens_at_any_address) {
  const Endpoint closed{"", listen_tcp(kHere)->address}, other{"", listen_tcp(kHere)->address};
  Dial dial = dial_to({closed, other});
  for (const Deadline deadline = soon(); !dial.is_refused();) {
    ASSERT_FALSE(deadline.passed());
    ASSERT_OK(dial.advance());
  }
  const Hole hole;
  Dial doubtful = dial_to({closed, hole.endpoint()});
  while (contains(doubtful.problems(), "not tried")) ASSERT_OK(doubtful.advance());
  EXPECT_FALSE(doubtful.is_refused());  // its packets may be lost on a way that leads there
}

TEST_F(DialTest, gives_the_acceptor_one_of_several_connections_and_uses_that_one) {
  Host host(2, secret_);
  Dial dial = dial_to(host.endpoints());
  while (attempts_of(dial) < 2) {  // rank 0 is busy
    ASSERT_OK(dial.advance());
    wait_for_events(dial, 600);
  }
  finish(dial, host);
  std::vector<Connection> accepted = host.acceptor().take_authenticated();
  ASSERT_EQ(accepted.size(), 1U);
  expect_joined(dial.take_connection(), accepted[0]);
  while (host.acceptor().wanted() > 2) ASSERT_OK(host.look());
  EXPECT_TRUE(host.acceptor().take_authenticated().empty());
  EXPECT_EQ(host.acceptor().refusals(), "");
}

TEST_F(DialTest, passes_by_another_rank_at_an_address_that_both_have) {
  Host other(1, secret_, 2), host(1, secret_);
  Dial dial = dial_to({other.endpoints()[0], host.endpoints()[0]});
  std::thread looks([&] {
    for (const Deadline deadline = soon(); other.acceptor().wanted() < 2 && !deadline.passed();)
      EXPECT_OK(other.look());
    while (other.acceptor().wanted() > 1) EXPECT_OK(other.look());
  });
  finish(dial, host);
  looks.join();
  EXPECT_EQ(host.acceptor().take_authenticated().size(), 1U);
}

TEST_F(DialTest, passes_by_a_job_with_another_secret) {
  Host other(1, *Secret::random()), host(1, secret_);
  Dial dial = dial_to({other.endpoints()[0], host.endpoints()[0]});
  while (!contains(dial.problems(), "another secret")) {
    ASSERT_OK(dial.advance());
    ASSERT_OK(other.look());
  }
  finish(dial, host);
  while (other.acceptor().refusals().empty()) ASSERT_OK(other.look());
  EXPECT_TRUE(contains(other.acceptor().refusals(), "a process at 127.0.0.1:"));
}

TEST_F(DialTest, counts_connections_with_another_secret) {
  Host host(1, secret_);
  for (int i = 0; i < 2; ++i) {
    Dial dial(*Secret::random(), {host.endpoints(), 1, 0});
    while (dial.advance().ok()) ASSERT_OK(host.look());
  }
  while (!contains(host.acceptor().refusals(), "2 connections")) ASSERT_OK(host.look());
}

TEST_F(DialTest, fails_without_an_address) {
  EXPECT_EQ(dial_to({}).advance().code(), Code::invalid_argument);
}

TEST_F(DialTest, tries_nothing_beside_a_unix_socket_that_connects) {
  const std::string name = "anyccl." + Secret::random()->hex();
  const Result<UniqueFd> listener = listen_unix(name);
  Host host(1, secret_);
  Dial dial = dial_to({{name, {}}, host.endpoints()[0]});
  ASSERT_OK(dial.advance());
  EXPECT_EQ(attempts_of(dial), 1U);
  EXPECT_EQ(dial.poll_ms(123456), 123456);
}

// Not under UBSan, which comes with ASan here: to look whether an object is one it opens a pipe.
#if !defined(__SANITIZE_ADDRESS__)
/// For a while no descriptor but `more` can be made.
class DescriptorsEnd {
 public:
  explicit DescriptorsEnd(rlim_t more = 0) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = static_cast<rlim_t>(UniqueFd(::dup(0)).get()) + more;
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  }
  ~DescriptorsEnd() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

TEST_F(DialTest, hears_that_the_acceptor_has_no_descriptor_left) {
  Host host(1, secret_);
  Dial dial = dial_to(host.endpoints());
  ASSERT_OK(dial.advance());
  {
    const DescriptorsEnd end;
    const Status status = host.look();
    EXPECT_EQ(status.code(), Code::system_error);
    EXPECT_TRUE(contains(status.message(), "`ulimit -n`")) << status.message();
  }
  Status status;
  for (const Deadline deadline = soon(); status.ok() && !deadline.passed();) {
    status = dial.advance();
    wait_for_events(dial);
  }
  EXPECT_EQ(status.code(), Code::system_error);
  EXPECT_TRUE(contains(status.message(), "no descriptor left")) << status.message();
}

TEST_F(DialTest, gets_the_last_descriptor_though_others_wait) {
  Host host(1, secret_);
  Dial first = dial_to(host.endpoints()), second = dial_to(host.endpoints());
  ASSERT_OK(first.advance());
  ASSERT_OK(second.advance());
  const DescriptorsEnd end(1);
  while (!first.done()) {
    ASSERT_OK(host.look());
    ASSERT_OK(first.advance());
  }
  EXPECT_FALSE(host.look().ok());  // nobody is left whose proof may come
}

TEST_F(DialTest, says_which_descriptors_are_used_up) {
  Host host(1, secret_);
  Dial dial = dial_to(host.endpoints());
  const DescriptorsEnd end;
  const Status status = dial.advance();
  EXPECT_EQ(status.code(), Code::system_error);
  EXPECT_TRUE(contains(status.message(), "`ulimit -n`")) << status.message();
  const Status listing = interface_addresses("").status();
  EXPECT_TRUE(contains(listing.message(), "`ulimit -n`")) << listing.message();
}

#endif

}  // namespace
}  // namespace anyccl::bootstrap
