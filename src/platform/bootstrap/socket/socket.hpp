#pragma once
// Stream sockets connect ranks with the root server and with each other: TCP sockets, and abstract
// unix sockets within a host. All of them are nonblocking and closed on exec. The functions here
// open, connect and accept them without waiting, and their callers poll.

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/config.hpp"
#include "base/unique_fd.hpp"
#include "platform/bootstrap/socket/address.hpp"

namespace anyccl::bootstrap {

/// Where to connect to: an abstract unix socket if `unix_name` is not empty, else `address`.
struct Endpoint {
  std::string unix_name;
  Address address;
  bool local() const { return !unix_name.empty(); }
};
std::string to_string(const Endpoint& endpoint);

/// The longest name of an abstract unix socket.
inline constexpr std::size_t kUnixName = 107;

struct TcpListener {
  UniqueFd socket;
  Address address;  ///< With the port that was really taken.
};

/// Errors: invalid_usage when the name is in use already; system_error.
Result<UniqueFd> listen_unix(const std::string& name);
/// Port 0: any free one, of `ports` if that is a range.
/// Errors: invalid_usage when the port is in use; unsupported when this host does not have the
/// address, or not yet; system_error, also when no port is free.
Result<TcpListener> listen_tcp(const Address& address, PortRange ports = {});

/// Errors: system_error if this process or machine has no descriptors or memory left, else
/// unsupported.
Result<UniqueFd> open_socket(const Endpoint& endpoint);
/// Begins to connect; POLLOUT says when to call finish_connect().
/// Errors: timeout when a unix listener's queue is full at the moment; remote_error when nobody
/// listens there; system_error.
Status start_connect(int fd, const Endpoint& endpoint);
/// Errors: remote_error when nobody listens there, also where the socket has connected to itself;
/// system_error.
Status finish_connect(int fd, const Endpoint& endpoint);

/// The next connection, or no socket (an invalid UniqueFd) when none is waiting.
/// Errors: system_error, when this process or host has no room for another socket, even if no
/// connection is waiting; internal when this is no listener any more.
Result<UniqueFd> accept_from(int listener);
/// Never waits. Of a connected socket it says whether there is something to read, or it has ended.
bool has_waiting_connection(int listener);

/// The process at the other end of a unix socket.
Result<ucred> peer_of(int fd);
/// Whether the other end of a socket is in this process too, as the kernel says: false for one that
/// is no unix socket.
bool leads_to_this_process(int fd);
/// "192.0.2.1:4000" or "a process of this host", for messages.
std::string describe_peer(int fd);

}  // namespace anyccl::bootstrap
