#include "launch/rendezvous.hpp"

#include <fmt/ranges.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <array>

#include "base/error.hpp"
#include "base/unique_fd.hpp"

namespace anyccl::cli {
namespace {

/// A socket bound to `port` on all addresses; 0 lets the system choose.
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

Result<int> port_of(const UniqueFd& socket) {
  sockaddr_in address{};
  socklen_t length = sizeof address;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0)
    return system_error(errno, "ask for the port of a socket");
  return static_cast<int>(ntohs(address.sin_port));
}

}  // namespace

Result<int> free_port_pair() {
  constexpr int kTries = 100, kLastPort = 65535;
  for (int i = 0; i < kTries; ++i) {
    ANYCCL_TRY(const UniqueFd first, bind_port(0));
    ANYCCL_TRY(const int port, port_of(first));
    if (port < kLastPort && bind_port(port + 1).ok()) return port;
  }
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
