#pragma once
// Ranks as threads of this process, connected in pairs.

#include <gtest/gtest.h>

#include <functional>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include "base/deadline.hpp"
#include "platform/transport/tcp/tcp_transport.hpp"

namespace anyccl::test {

enum class Wire { unix_socket, loopback };
std::pair<UniqueFd, UniqueFd> connected(Wire wire);

/// One transport per rank, everyone connected to everyone.
std::vector<std::unique_ptr<Transport>> group(int ranks, Wire wire, tcp::TcpOptions options = {});
/// Runs `body` for every rank of a group in its own thread, then lets them leave.
void run_ranks(int ranks, Wire wire, const std::function<void(int rank, Transport&)>& body);

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

/// How long a test waits for what must happen.
inline Deadline patience() {
  return Deadline::in(std::chrono::seconds(30));
}

/// Calls t.check() until `done`, which must happen in time.
void wait_until(Transport& t, const std::function<bool()>& done);
/// The first Status of check() that is not ok.
Status wait_for_problem(Transport& t);

/// What is common to the publications of a test.
inline Outgoing number_of(std::uint64_t operation, std::uint32_t number = 0,
                          Context context = Context::collective) {
  Outgoing out;
  out.context = context;
  out.operation = operation;
  out.number = number;
  return out;
}
/// Publishes source[0, out.bytes) for `readers`, waiting while the transport is busy.
void publish(Transport& t, Outgoing out, std::vector<ReaderOf> readers, const std::byte* source);
/// The same for one reader of everything.
void publish_to(Transport& t, int reader, Outgoing out, std::span<const std::byte> bytes);
/// What poll() returns for `in`, waiting until it is there; null if check() or time says no.
const std::byte* await(Transport& t, const Incoming& in);

/// `bytes` bytes that depend on `seed`.
std::vector<std::byte> pattern(std::size_t bytes, unsigned seed);
bool equal(const std::byte* data, std::span<const std::byte> expected);

class OnEachWire : public testing::TestWithParam<Wire> {};
#define ANYCCL_ON_EACH_WIRE(suite)                                                  \
  INSTANTIATE_TEST_SUITE_P(                                                         \
      wires, suite, testing::Values(test::Wire::unix_socket, test::Wire::loopback), \
      [](const auto& wire) { return wire.param == test::Wire::loopback ? "loopback" : "unix"; })

}  // namespace anyccl::test
