// What goes wrong while ranks meet at the root server, and what everyone is told.

#include <gtest/gtest.h>

#include "platform/bootstrap/rendezvous/frame.hpp"
#include "unauthenticated.hpp"

namespace anyccl::bootstrap {
namespace {

using namespace test;
using std::chrono::milliseconds;

class JoinFault : public testing::Test {
 protected:
  void SetUp() override {
    Result<Rendezvous> made = make_rendezvous("");
    ASSERT_OK(made.status());
    meeting_ = *std::move(made);
  }
  Result<Group> join_as(int rank, int size, Deadline deadline = soon(),
                        std::string_view settings = "") {
    return join(meeting_.id, make_member(rank, size, settings).hello, deadline);
  }
  /// A rank that has authenticated itself and, perhaps, introduced itself, and does not wait.
  Connection arrive(std::uint32_t rank) {
    Result<Connection> connection =
        dial_to_end(Dial(Secret(meeting_.id.secret), {endpoints_of(meeting_.id), rank, kToRoot}));
    if (!connection.ok()) throw std::runtime_error(message_of(connection));
    return *std::move(connection);
  }
  static void introduce(const Connection& to, int rank, int size) {
    const HelloFrame frame{make_member(rank, size).hello, kForever, 0};
    const Result<FrameHeader> header = seal(to.session, Frame::hello, bytes_of(frame));
    EXPECT_OK(send_all(to.socket.get(), bytes_of(*header), soon(), "root"));
    EXPECT_OK(send_all(to.socket.get(), bytes_of(frame), soon(), "root"));
  }

  Rendezvous meeting_;
};

TEST_F(JoinFault, missing_ranks_are_named_to_those_that_came) {
  in_threads(2, [&](int i) {
    const Result<Group> group = join_as(2 * i, 4, Deadline::in(milliseconds(2000)));
    EXPECT_EQ(group.status().code(), Code::timeout);
    for (const char* part : {"2 of 4 ranks joined within", "missing: 1, 3"})
      EXPECT_TRUE(contains(message_of(group), part)) << message_of(group);
  });
}

TEST_F(JoinFault, a_rank_that_joins_twice_ends_the_group_for_everyone) {
  const int ranks[] = {0, 1, 1};
  in_threads(3, [&](int i) {
    const Result<Group> group = join_as(ranks[i], 4);
    EXPECT_EQ(group.status().code(), Code::invalid_usage);
    EXPECT_TRUE(contains(message_of(group), "rank 1 joined twice")) << message_of(group);
  });
}

TEST_F(JoinFault, settings_that_differ_are_named_to_everyone) {
  in_threads(2, [&](int rank) {
    const std::string_view settings = rank == 0 ? "ANYCCL_PROTO=LL" : "ANYCCL_PROTO=Simple";
    const Result<Group> group = join_as(rank, 3, soon(), settings);
    EXPECT_EQ(group.status().code(), Code::invalid_usage);
    EXPECT_TRUE(contains(message_of(group), "ANYCCL_PROTO must be the same")) << message_of(group);
  });
}

TEST_F(JoinFault, late_ranks_are_told_why_the_group_has_failed) {
  in_threads(2, [&](int i) { EXPECT_FALSE(join_as(1, 4 + i).ok()); });
  const Result<Group> late = join_as(3, 4);
  EXPECT_EQ(late.status().code(), Code::invalid_usage);
  EXPECT_TRUE(contains(message_of(late), "for a group of")) << message_of(late);
}

TEST_F(JoinFault, a_rank_outside_the_group_is_refused_before_it_calls) {
  Hello hello = make_member(1, 2).hello;
  hello.rank = 2;
  const Result<Group> group = join(meeting_.id, hello, soon());
  EXPECT_EQ(group.status().code(), Code::invalid_argument);
  EXPECT_TRUE(contains(message_of(group), "is not in a group of 2 ranks")) << message_of(group);
}

TEST_F(JoinFault, another_secret_is_refused_at_once_and_the_group_still_forms) {
  UniqueId wrong = meeting_.id;
  wrong.secret[0] ^= std::byte{1};
  const Result<Group> refused = join(wrong, make_member(0, 1).hello, soon());
  EXPECT_EQ(refused.status().code(), Code::invalid_argument);
  EXPECT_TRUE(contains(message_of(refused), "another secret")) << message_of(refused);
  EXPECT_OK(join_as(0, 1).status());
}

TEST_F(JoinFault, a_stopped_root_server_tells_its_members) {
  std::vector<Connection> members;
  for (std::uint32_t rank = 0; rank < 2; ++rank) members.push_back(arrive(rank));
  std::thread stopper([&] { meeting_.server->stop(); });
  for (int rank = 0; rank < 2; ++rank) {
    const int fd = members[static_cast<std::size_t>(rank)].socket.get();
    introduce(members[static_cast<std::size_t>(rank)], rank, 3);
    FrameHeader header;
    ASSERT_OK(recv_all(fd, std::as_writable_bytes(std::span(&header, 1)), soon(), "root"));
    ASSERT_LE(header.bytes, sizeof(FailureHead) + kFailureText);
    std::vector<std::byte> payload(header.bytes);
    ASSERT_OK(recv_all(fd, payload, soon(), "root"));
    EXPECT_EQ(read_failure(payload).code(), Code::aborted);
  }
  stopper.join();
}

TEST_F(JoinFault, a_root_server_that_goes_away_is_noticed_at_once) {
  // A listener that authenticates its peer and then hangs up.
  Result<TcpListener> listener = listen_tcp({4, 0, 0, {127, 0, 0, 1}});
  ASSERT_OK(listener.status());
  const Secret secret = *Secret::random();
  std::thread root([&] {
    Acceptor acceptor({{listener->socket.get(), false}}, secret, kToRoot, Trust::secret);
    EXPECT_EQ(wait_for_authenticated(acceptor).from, 0U);
  });
  const Result<Group> group =
      join(id_at(listener->address, secret), make_member(0, 2).hello, soon());
  root.join();
  EXPECT_EQ(group.status().code(), Code::remote_error);
  EXPECT_TRUE(contains(message_of(group), "the root server closed")) << message_of(group);
}

TEST_F(JoinFault, a_member_that_leaves_is_named_to_the_others) {
  Connection leaver = arrive(1);
  introduce(leaver, 1, 3);
  std::thread stayer([&] {
    const Result<Group> group = join_as(0, 3);
    EXPECT_EQ(group.status().code(), Code::remote_error);
    EXPECT_TRUE(contains(message_of(group), "rank 1 left")) << message_of(group);
  });
  leaver.socket.reset();
  stayer.join();
}

TEST_F(JoinFault, silent_and_garbage_connections_do_not_keep_a_group_from_forming) {
  std::mt19937 random = seeded();
  std::vector<UniqueFd> before = pester(endpoints_of(meeting_.id), random);
  in_threads(5, [&](int i) {
    std::mt19937 own(static_cast<unsigned>(i));
    if (i == 4) {
      EXPECT_OK(join_as(0, 4).status());
      return;
    }
    if (i > 0) EXPECT_OK(join_as(i, 4).status());
    if (i == 0) before.clear();
  });
}

TEST_F(JoinFault, silent_strangers_take_no_places_from_ranks) {
  const auto is_network = [](const Endpoint& endpoint) { return !endpoint.local(); };
  const std::vector<Endpoint> endpoints = endpoints_of(meeting_.id);
  const auto at = std::find_if(endpoints.begin(), endpoints.end(), is_network);
  ASSERT_NE(at, endpoints.end());
  std::vector<UniqueFd> open;
  for (int i = 0; i < 3000; ++i) open.push_back(connect_to(*at));
  in_threads(2, [&](int rank) { EXPECT_OK(join_as(rank, 2).status()); });
}

TEST_F(JoinFault, strangers_with_the_secret_but_without_a_proper_hello_are_dropped) {
  std::mt19937 random = seeded();
  std::vector<Connection> unauthenticated;
  for (const std::size_t size :
       {1UL, sizeof(FrameHeader), sizeof(FrameHeader) + sizeof(HelloFrame), 5000UL}) {
    unauthenticated.push_back(arrive(1));
    const std::vector<std::byte> bytes = random_text(random, size);
    static_cast<void>(send_all(unauthenticated.back().socket.get(), bytes, soon(), "root").ok());
  }
  in_threads(2, [&](int rank) { EXPECT_OK(join_as(rank, 2).status()); });
}

TEST(JoinElsewhere, a_closed_port_is_named_with_a_hint) {
  const Address address = listen_tcp({4, 0, 0, {127, 0, 0, 1}})->address;
  const Result<Group> group =
      join(id_at(address), make_member(0, 1).hello, Deadline::in(milliseconds(100)));
  EXPECT_EQ(group.status().code(), Code::timeout);
  for (const std::string& part :
       {to_string(address), std::string("Connection refused"), std::string("must still run")})
    EXPECT_TRUE(contains(message_of(group), part)) << message_of(group);
}

TEST(JoinElsewhere, an_unreachable_address_is_named) {
  // The broadcast address, which no TCP connection reaches from anywhere.
  const Result<Group> group = join(id_at({4, 9, 0, {255, 255, 255, 255}}), make_member(0, 1).hello,
                                   Deadline::in(milliseconds(100)));
  EXPECT_EQ(group.status().code(), Code::timeout);
  EXPECT_TRUE(contains(message_of(group), "255.255.255.255:9: Network is unreachable"))
      << message_of(group);
}

TEST(JoinElsewhere, an_address_that_does_not_answer_is_named) {
  const Result<TcpListener> silent = listen_tcp({4, 0, 0, {127, 0, 0, 1}});
  ASSERT_OK(silent.status());
  const Result<Group> group =
      join(id_at(silent->address), make_member(0, 1).hello, Deadline::in(milliseconds(100)));
  EXPECT_EQ(group.status().code(), Code::timeout);
  EXPECT_TRUE(contains(message_of(group), to_string(silent->address) +
                                              ": it accepted the connection and did not answer"))
      << message_of(group);
}

TEST(JoinElsewhere, the_next_address_is_tried_when_one_leads_nowhere) {
  Result<Rendezvous> rendezvous = make_rendezvous("");
  ASSERT_OK(rendezvous.status());
  const Address closed = listen_tcp({4, 0, 0, {127, 0, 0, 1}})->address;
  const std::vector<Address> addresses = {closed, rendezvous->id.addresses()[0]};
  const UniqueId id = *UniqueId::make(Secret(rendezvous->id.secret), addresses);
  EXPECT_OK(join(id, make_member(0, 1).hello, soon()).status());
}

/// What join() says about a listener that sends `reply` to whoever connects.
Status join_at_listener_that_sends(Bytes reply) {
  const Result<TcpListener> listener = listen_tcp({4, 0, 0, {127, 0, 0, 1}});
  std::thread server([&] {
    EXPECT_OK(wait_for(listener->socket.get(), POLLIN, soon(), "client"));
    const Result<UniqueFd> client = accept_from(listener->socket.get());
    std::vector<std::byte> greeting(sizeof(Greeting));
    EXPECT_OK(recv_all(client->get(), greeting, soon(), "client"));
    EXPECT_OK(send_all(client->get(), reply, soon(), "client"));
    // Until the client hangs up.
    EXPECT_OK(wait_for(client->get(), POLLIN, soon(), "client"));
  });
  const Status status = join(id_at(listener->address), make_member(0, 1).hello, soon()).status();
  server.join();
  return status;
}

TEST(JoinElsewhere, something_that_is_not_anyccl_is_recognised) {
  const std::string reply = "HTTP/1.1 400 Bad Request\r\n" + std::string(200, ' ');
  const Status s = join_at_listener_that_sends(std::as_bytes(std::span(reply)));
  EXPECT_EQ(s.code(), Code::invalid_argument);
  EXPECT_TRUE(contains(s.message(), "not anyccl listens there")) << s.message();
}

TEST(JoinElsewhere, another_version_is_recognised) {
  Answer answer;
  answer.magic = {'a', 'n', 'y', 'c', 'c', 'l', '!', '\n'};
  answer.protocol = kProtocol + 1;
  const Status s = join_at_listener_that_sends(bytes_of(answer));
  EXPECT_EQ(s.code(), Code::invalid_argument);
  EXPECT_TRUE(contains(s.message(), "another version of anyccl")) << s.message();
}

TEST_F(JoinFault, a_greeting_of_another_version_is_answered_with_ours) {
  const UniqueFd socket = connect_to(endpoints_of(meeting_.id).front());
  Greeting greeting;
  greeting.magic = {'a', 'n', 'y', 'c', 'c', 'l', '?', '\n'};
  greeting.protocol = kProtocol + 1;
  ASSERT_OK(send_all(socket.get(), bytes_of(greeting), soon(), "root"));
  Answer answer;
  ASSERT_OK(recv_all(socket.get(), std::as_writable_bytes(std::span(&answer, 1)), soon(), "root"));
  EXPECT_EQ(answer.protocol, kProtocol);
  EXPECT_EQ(answer.proof, Mac{});
}

}  // namespace
}  // namespace anyccl::bootstrap
