#include "platform/transports/unix_socket/unix_transport.hpp"

#include <sys/socket.h>

#include "base/error.hpp"
#include "platform/transports/sockets/socket_transport.hpp"

namespace anyccl::unix_socket {
namespace {

class UnixSocket final : public link::SocketKind {
 public:
  std::string name(int) const override { return "unix"; }
  /// Unix sockets do not grow: as much as the system allows, so that a tile goes out in one call.
  Status set_up(int fd) const override {
    const int bytes = 4 << 20;
    if (::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes) == 0) return {};
    return system_error(errno, "set SO_SNDBUF on a connection to a peer");
  }
  bool all_delivered(int) const override { return true; }  // it goes to the peer's queue at once
  bool carries_descriptors() const override { return true; }
};

}  // namespace

std::unique_ptr<const link::SocketKind> unix_socket() {
  return std::make_unique<UnixSocket>();
}

Result<MadeTransport> make_unix_transport(std::vector<link::PeerChannel> peers,
                                          const TransportSetup& setup) {
  MadeTransport made;
  ANYCCL_TRY(made.transport, sockets::make_socket_transport(setup.context, std::move(peers)));
  return made;
}

}  // namespace anyccl::unix_socket
