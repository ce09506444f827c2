#pragma once
// Connections that do not belong to the group.

#include <random>

#include "platform/bootstrap/auth/acceptor.hpp"
#include "platform/bootstrap/auth/dial.hpp"
#include "platform/bootstrap/socket/interfaces.hpp"
#include "unit/bootstrap/random_bytes.hpp"
#include "unit/bootstrap/ranks.hpp"

namespace anyccl::bootstrap::test {

/// A connection to `endpoint` that has not said anything yet.
inline UniqueFd connect_to(const Endpoint& endpoint) {
  Result<UniqueFd> socket = open_socket(endpoint);
  if (!socket.ok()) throw std::runtime_error(message_of(socket));
  if (!start_connect(socket->get(), endpoint).ok() ||
      !wait_for(socket->get(), POLLOUT, soon(), "listener").ok() ||
      !finish_connect(socket->get(), endpoint).ok())
    throw std::runtime_error("cannot connect to " + to_string(endpoint));
  return *std::move(socket);
}

/// Around the lengths of messages.
inline constexpr std::size_t kLengths[] = {0, 1, 7, 8, 16, 39, 40, 41, 64, 72, 104, 500, 4096};

/// A proper greeting with random ranks and nonce.
inline Greeting random_greeting(std::mt19937& random) {
  Greeting greeting = read_as<Greeting>(random_text(random, sizeof(Greeting)));
  greeting.magic = {'a', 'n', 'y', 'c', 'c', 'l', '?', '\n'};
  greeting.protocol = kProtocol;
  greeting.to = random() % 2 == 0 ? kToRoot : static_cast<std::uint32_t>(random() % 4);
  greeting.from = static_cast<std::uint32_t>(random() % 4);
  return greeting;
}

/// Connects to each endpoint many times: some connections stay silent, some send random bytes of
/// many lengths, some begin like anyccl and go on randomly, some close at once. Returns those to
/// keep open.
inline std::vector<UniqueFd> pester(const std::vector<Endpoint>& endpoints, std::mt19937& random) {
  std::vector<UniqueFd> open;
  // What is sent may meet a connection that was dropped already.
  const auto say = [](const UniqueFd& socket, Bytes bytes) {
    static_cast<void>(send_all(socket.get(), bytes, soon(), "listener").ok());
  };
  for (const Endpoint& endpoint : endpoints) {
    for (const std::size_t size : kLengths) {
      for (const bool greets : {false, true}) {
        UniqueFd socket = connect_to(endpoint);
        if (greets) say(socket, bytes_of(random_greeting(random)));
        say(socket, random_text(random, size));
        if (random() % 4 != 0) open.push_back(std::move(socket));
      }
    }
  }
  return open;
}

inline std::vector<Endpoint> endpoints_of(const UniqueId& id) {
  return OwnNetwork::find()->endpoints_to(id.addresses());
}

inline std::vector<Endpoint> endpoints_of(const Listeners& listeners) {
  std::vector<Endpoint> endpoints{{listeners.unix_name, {}}};
  for (const TcpListener& tcp : listeners.tcp) endpoints.push_back({"", tcp.address});
  return endpoints;
}

/// Polls until `dial` has a connection.
inline Result<Connection> dial_to_end(Dial dial) {
  for (const Deadline deadline = soon(); !deadline.passed();) {
    if (Status s = dial.advance(); !s.ok()) return s;
    if (dial.done()) return dial.take_connection();
    std::vector<pollfd> entries;
    dial.append_wanted(entries);
    ::poll(entries.data(), entries.size(), dial.poll_ms(1000));
  }
  return Status(Code::timeout, dial.problems());
}

/// Polls until `acceptor` has an authenticated peer.
inline Connection wait_for_authenticated(Acceptor& acceptor) {
  for (const Deadline deadline = soon(); !deadline.passed();) {
    std::vector<pollfd> entries;
    acceptor.append_wanted(entries);
    ::poll(entries.data(), entries.size(), acceptor.poll_ms(1000));
    if (!acceptor.progress(entries).ok()) break;
    std::vector<Connection> peers = acceptor.take_authenticated();
    if (!peers.empty()) return std::move(peers.front());
  }
  throw std::runtime_error("nobody came");
}

/// A unique id that leads to `address` only.
inline UniqueId id_at(const Address& address, const Secret& secret = Secret()) {
  return *UniqueId::make(secret, std::span(&address, 1));
}

}  // namespace anyccl::bootstrap::test
