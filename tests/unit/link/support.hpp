#pragma once
// Ranks as threads of this process, connected in pairs.

#include <gtest/gtest.h>

#include <functional>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include "platform/transports/sockets/socket_transport.hpp"
#include "support/transports.hpp"

namespace anyccl::test {

inline constexpr std::size_t kMiB = std::size_t{1} << 20;

enum class Wire { unix_socket, loopback };
Ends connected(Wire wire);

/// One transport per rank, everyone connected to everyone.
std::vector<std::unique_ptr<Transport>> group(int ranks, Wire wire);
/// Runs `body` for every rank of a group in its own thread, then lets them leave.
void run_ranks(int ranks, Wire wire, const std::function<void(int rank, Transport&)>& body);

std::unique_ptr<Transport> transport(Wire wire, int rank, std::vector<PeerSocket> peers);

/// Rank 0's transport, and the bare socket of its peer, rank 1.
struct BarePeer {
  explicit BarePeer(Wire wire = Wire::unix_socket);
  void send(std::span<const std::byte> bytes) const;
  template <typename T>
  void send_object(const T& object) const {
    send(std::as_bytes(std::span(&object, 1)));
  }

  UniqueFd socket;
  std::unique_ptr<Transport> transport;
};

/// What is common to the publications of a test.
inline Outgoing number_of(std::uint64_t operation, std::uint32_t number = 0) {
  Outgoing out;
  out.operation = operation;
  out.number = number;
  return out;
}
/// Publishes source[0, out.bytes) for `readers`, waiting while the transport is busy, with offer()
/// alone.
void offer_until_taken(Transport& t, Outgoing out, const std::vector<ReaderOf>& readers,
                       const std::byte* source);
/// The same for one reader of everything.
void publish_to(Transport& t, int reader, Outgoing out, std::span<const std::byte> bytes);
class OnEachWire : public testing::TestWithParam<Wire> {};
#define ANYCCL_ON_EACH_WIRE(suite)                                                  \
  INSTANTIATE_TEST_SUITE_P(                                                         \
      wires, suite, testing::Values(test::Wire::unix_socket, test::Wire::loopback), \
      [](const auto& wire) { return wire.param == test::Wire::loopback ? "loopback" : "unix"; })

}  // namespace anyccl::test
