#pragma once
// A root server for groups that are large by its numbers, and ranks of such a group that do only
// what a test says.

#include <gtest/gtest.h>

#include "platform/bootstrap/group/table.hpp"
#include "platform/bootstrap/rendezvous/frame.hpp"
#include "platform/bootstrap/rendezvous/root_server.hpp"
#include "unauthenticated.hpp"

namespace anyccl::bootstrap::test {

class LargeGroup : public testing::Test {
 protected:
  void start(RelayTree tree, Trust trust = Trust::secret) {
    std::vector<UniqueFd> sockets;
    meeting_.trust = trust;
    meeting_.tree = tree;
    if (trust == Trust::same_user) {
      meeting_.endpoints = {{"anyccl." + Secret::random()->hex(), {}}};
      sockets.push_back(*listen_unix(meeting_.endpoints[0].unix_name));
    } else {
      meeting_.secret = *Secret::random();
      Result<TcpListener> listener = listen_tcp({4, 0, 0, {127, 0, 0, 1}});
      meeting_.endpoints = {{"", listener->address}};
      sockets.push_back(std::move(listener->socket));
    }
    auto server = RootServer::start(std::move(sockets), meeting_.secret, trust, tree);
    ASSERT_OK(server.status());
    server_ = *std::move(server);
  }

  /// A connection to `endpoints` as a rank that does nothing by itself.
  Connection call(std::vector<Endpoint> endpoints, std::uint32_t from, std::uint32_t to) {
    Result<Connection> connection =
        dial_to_end(Dial(meeting_.secret, {std::move(endpoints), from, to, meeting_.trust}));
    if (!connection.ok()) throw std::runtime_error(message_of(connection));
    return *std::move(connection);
  }
  static void send(const Connection& to, Frame kind, Bytes payload) {
    const Result<FrameHeader> header = seal(to.session, kind, payload);
    EXPECT_OK(send_all(to.socket.get(), bytes_of(*header), soon(), "peer"));
    EXPECT_OK(send_all(to.socket.get(), payload, soon(), "peer"));
  }
  static void send_table(const Connection& to, const std::vector<Hello>& hellos) {
    std::vector<std::byte> payload(sizeof(GroupHead));
    const std::vector<std::byte> table = encode_table(hellos);
    payload.insert(payload.end(), table.begin(), table.end());
    send(to, Frame::table, payload);
  }
  /// The hello that begins what comes over it.
  static HelloFrame receive_hello(const Connection& from) {
    std::vector<std::byte> bytes(sizeof(FrameHeader) + sizeof(HelloFrame));
    EXPECT_OK(recv_all(from.socket.get(), bytes, soon(), "rank"));
    return read_as<HelloFrame>(Bytes(bytes).subspan(sizeof(FrameHeader)));
  }
  static Frame next_kind(const Connection& from) {
    FrameHeader header;
    EXPECT_OK(
        recv_all(from.socket.get(), std::as_writable_bytes(std::span(&header, 1)), soon(), "peer"));
    return static_cast<Frame>(header.kind);
  }
  /// What the root server says to a leader: the rank that tells it, or null: it hears the answer
  /// there.
  static std::optional<Hello> receive_place(const Connection& root) {
    FrameHeader header;
    EXPECT_OK(
        recv_all(root.socket.get(), std::as_writable_bytes(std::span(&header, 1)), soon(), "root"));
    EXPECT_EQ(header.kind, static_cast<std::uint32_t>(Frame::place));
    std::vector<std::byte> payload(header.bytes);
    EXPECT_OK(recv_all(root.socket.get(), payload, soon(), "root"));
    if (payload.size() < sizeof(Place) + sizeof(Hello)) return std::nullopt;
    return read_as<Hello>(Bytes(payload).subspan(sizeof(Place)));
  }
  static HelloFrame hello_frame_of(const Member& member) {
    return HelloFrame{member.hello, kForever, 0, 0, 0};
  }

  RendezvousAddress meeting_;
  std::unique_ptr<RootServer> server_;
};

}  // namespace anyccl::bootstrap::test
