#include "platform/bootstrap/socket/socket.hpp"

#include <netinet/tcp.h>
#include <poll.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

#include "base/error.hpp"
#include "base/printable.hpp"

namespace anyccl::bootstrap {
namespace {

// All ranks of a large job arrive at once; the kernel lowers this to net.core.somaxconn.
constexpr int kBacklog = 4096;

bool is_shortage(int number) {
  return number == EMFILE || number == ENFILE || number == ENOBUFS || number == ENOMEM;
}

Result<UniqueFd> open_socket(int family) {
  UniqueFd socket(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (socket) return socket;
  const int number = errno;
  if (is_shortage(number)) return system_error(number, "opening a socket");
  return Status(Code::unsupported, std::string(system_error(number, "opening a socket").message()));
}

SocketAddress abstract_name(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t size = std::min(name.size(), kUnixName);
  std::memcpy(address.sun_path + 1, name.data(), size);
  SocketAddress made;
  std::memcpy(&made.storage, &address, sizeof address);
  made.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + size);
  return made;
}

SocketAddress address_of(const Endpoint& endpoint) {
  return endpoint.local() ? abstract_name(endpoint.unix_name) : to_socket_address(endpoint.address);
}

int native_family(const Endpoint& endpoint) {
  return endpoint.local() ? AF_UNIX : endpoint.address.family == 4 ? AF_INET : AF_INET6;
}

Status switch_option_on(int fd, int level, int option) {
  const int on = 1;
  if (::setsockopt(fd, level, option, &on, sizeof on) == 0) return {};
  return system_error(errno, "setting option {} of a socket", option);
}

Result<Address> own_address(int fd) {
  SocketAddress own;
  own.length = sizeof own.storage;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&own.storage), &own.length) != 0)
    return system_error(errno, "getsockname");
  return to_address(*own.get());
}

/// Returns invalid_usage, or system_error where any free port would have done.
Status in_use_error(const Endpoint& endpoint) {
  if (endpoint.local() || endpoint.address.port != 0)
    return error(Code::invalid_usage, "{} is in use by another process", to_string(endpoint));
  return system_error(EADDRINUSE,
                      "no port is free at {}: all of net.ipv4.ip_local_port_range are in use",
                      to_string(endpoint));
}

Status bind_and_listen(int fd, const Endpoint& endpoint) {
  const SocketAddress address = address_of(endpoint);
  if (::bind(fd, address.get(), address.length) != 0) {
    const int number = errno;
    if (number == EADDRINUSE) return in_use_error(endpoint);
    const Status why = system_error(number, "binding to {}", to_string(endpoint));
    const bool lacks_address = number == EADDRNOTAVAIL || number == ENODEV;
    return lacks_address ? Status(Code::unsupported, std::string(why.message())) : why;
  }
  if (::listen(fd, kBacklog) != 0) {
    if (errno == EADDRINUSE) return in_use_error(endpoint);
    return system_error(errno, "listening at {}", to_string(endpoint));
  }
  return {};
}

/// Who connects speaks first. Until then it stays with the kernel, so that strangers who say
/// nothing take no descriptor and none of the places of those that have not proved themselves. A
/// kernel that cannot do that hands them over at once.
void keep_silent_ones_waiting(int listener) {
  constexpr int kSeconds = 20;
  static_cast<void>(
      ::setsockopt(listener, IPPROTO_TCP, TCP_DEFER_ACCEPT, &kSeconds, sizeof kSeconds));
}

Result<TcpListener> listen_at(const Address& address) {
  const Endpoint endpoint{"", address};
  ANYCCL_TRY(UniqueFd socket, open_socket(native_family(endpoint)));
  ANYCCL_CHECK(switch_option_on(socket.get(), SOL_SOCKET, SO_REUSEADDR));
  if (address.family == 6) ANYCCL_CHECK(switch_option_on(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY));
  ANYCCL_CHECK(bind_and_listen(socket.get(), endpoint));
  keep_silent_ones_waiting(socket.get());
  ANYCCL_TRY(const Address bound, own_address(socket.get()));
  return TcpListener{std::move(socket), bound};
}

Status cannot_connect(int number, const Endpoint& endpoint) {
  if (number == EADDRNOTAVAIL && endpoint.address.family == 4)
    return system_error(number, "{}: no port is free on this side (net.ipv4.ip_local_port_range)",
                        to_string(endpoint));
  const Status why = system_error(number, "{}", to_string(endpoint));
  return number == ECONNREFUSED ? Status(Code::remote_error, std::string(why.message())) : why;
}

}  // namespace

std::string to_string(const Endpoint& endpoint) {
  return endpoint.local() ? fmt::format("unix socket @{}", printable(endpoint.unix_name))
                          : to_string(endpoint.address);
}

Result<UniqueFd> listen_unix(const std::string& name) {
  ANYCCL_TRY(UniqueFd socket, open_socket(AF_UNIX));
  ANYCCL_CHECK(bind_and_listen(socket.get(), {name, {}}));
  return socket;
}

Result<TcpListener> listen_tcp(const Address& address, PortRange ports) {
  if (address.port != 0 || ports.is_any()) return listen_at(address);
  for (int port = ports.low; port <= ports.high; ++port) {
    Result<TcpListener> made = listen_at(with_port(address, static_cast<std::uint16_t>(port)));
    if (made.ok() || made.status().code() != Code::invalid_usage) return made;
  }
  return system_error(EADDRINUSE,
                      "no port of ANYCCL_PORT_RANGE={}-{} is free at {}: each rank of a host needs "
                      "one while it starts, and a process that has made a unique id another one",
                      ports.low, ports.high, to_string(address));
}

Result<UniqueFd> open_socket(const Endpoint& endpoint) {
  ANYCCL_TRY(UniqueFd socket, open_socket(native_family(endpoint)));
  if (!endpoint.local()) {
    ANYCCL_CHECK(switch_option_on(socket.get(), IPPROTO_TCP, TCP_NODELAY));
    // See finish_connect(): a socket that got the wanted port must not keep the listener from it.
    ANYCCL_CHECK(switch_option_on(socket.get(), SOL_SOCKET, SO_REUSEADDR));
  }
  return socket;
}

Status start_connect(int fd, const Endpoint& endpoint) {
  const SocketAddress address = address_of(endpoint);
  if (::connect(fd, address.get(), address.length) == 0) return {};
  if (errno == EINPROGRESS || errno == EINTR) return {};
  if (errno == EAGAIN && endpoint.local())
    return error(Code::timeout, "{} has too many connections waiting", to_string(endpoint));
  return cannot_connect(errno, endpoint);
}

Status finish_connect(int fd, const Endpoint& endpoint) {
  int problem = 0;
  socklen_t size = sizeof problem;
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &problem, &size) != 0) problem = errno;
  if (problem != 0) return cannot_connect(problem, endpoint);
  if (endpoint.local()) return {};
  // Where nobody listens at a port that the kernel hands out, a socket can get that very port and
  // connect to itself.
  ANYCCL_TRY(const Address own, own_address(fd));
  if (own == endpoint.address) return cannot_connect(ECONNREFUSED, endpoint);
  return {};
}

Result<UniqueFd> accept_from(int listener) {
  for (;;) {
    UniqueFd socket(::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket) {
      // Fails on a unix socket, which has nothing to delay.
      const int on = 1;
      ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      return socket;
    }
    if (is_shortage(errno)) return system_error(errno, "accepting a connection");
    switch (errno) {
      case EINTR:
      case ECONNABORTED:
        continue;
      case EBADF:
      case EINVAL:
      case ENOTSOCK:
        return Status(Code::internal,
                      std::string(system_error(errno, "accepting a connection").message()));
      default:
        return UniqueFd();  // Nobody waits, or this one connection is broken already.
    }
  }
}

bool has_waiting_connection(int listener) {
  pollfd entry{listener, POLLIN, 0};
  return ::poll(&entry, 1, 0) == 1;
}

Result<ucred> peer_of(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
    return system_error(errno, "asking who is at the other end of a unix socket");
  return peer;
}

bool leads_to_this_process(int fd) {
  const Result<ucred> peer = peer_of(fd);
  return peer.ok() && peer->pid == ::getpid();
}

std::string describe_peer(int fd) {
  SocketAddress peer;
  peer.length = sizeof peer.storage;
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer.storage), &peer.length) != 0)
    return "a lost peer";
  const Address address = to_address(*peer.get());
  return address.family == 0 ? "a process of this host" : to_string(address);
}

}  // namespace anyccl::bootstrap
