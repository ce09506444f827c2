#include "launch/rendezvous.hpp"

#include <fmt/ranges.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <array>
#include <fstream>
#include <random>

#include "base/error.hpp"
#include "base/unique_fd.hpp"

namespace anyccl::cli {
namespace {

/// A socket bound to `port` on all addresses.
Result<UniqueFd> bind_port(int port) {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return system_error(errno, "create a TCP socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return system_error(errno, "bind TCP port {}", port);
  return socket;
}

/// The first port that the system gives to connections of its own choosing.
int first_ephemeral() {
  int first = 32768;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> first;
  return first;
}

}  // namespace

// Below the ports that the system hands out by itself, so that no connection of another program
// takes one of the two before they are used. Where that range leaves hardly any below it, from all.
Result<int> free_port_pair() {
  constexpr int kTries = 1000, kFirst = 10000, kLast = 65534;
  const int end = first_ephemeral() > 2 * kFirst ? first_ephemeral() - 1 : kLast;
  std::random_device random;
  std::uniform_int_distribution<int> any(kFirst, end - 1);
  for (int i = 0; i < kTries; ++i)
    if (const int port = any(random); bind_port(port).ok() && bind_port(port + 1).ok()) return port;
  return error(Code::system_error,
               "found no two neighbouring free TCP ports in {} tries; use --port", kTries);
}

Result<std::string> random_secret() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    return system_error(errno, "get {} random bytes", bytes.size());
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

}  // namespace anyccl::cli
