#include "platform/transport/tcp/tcp_transport.hpp"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/error.hpp"
#include "platform/transport/sockets/socket_transport.hpp"

namespace anyccl::tcp {
namespace {

Status set_option(int fd, int level, int option, int value, const char* name) {
  if (::setsockopt(fd, level, option, &value, sizeof value) == 0) return {};
  return system_error(errno, "set {} on a connection to a peer", name);
}

Status set_congestion(int fd, const std::string& wanted) {
  // Bbr, a common default, paces what it sends: over loopback and virtual links it moved 16 to 43
  // Gbit/s where cubic moved 94 to 107.
  const std::string& name = wanted.empty() ? std::string("cubic") : wanted;
  const bool set = ::setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(),
                                static_cast<socklen_t>(name.size())) == 0;
  if (set || wanted.empty()) return {};
  const Status why = system_error(errno, "set it");
  return error(Code::invalid_argument,
               "ANYCCL_TCP_CONGESTION={} cannot be used ({}); /proc/sys/net/ipv4/"
               "tcp_allowed_congestion_control lists what can",
               wanted, why.message());
}

Status set_up(int fd, const std::string& congestion) {
  ANYCCL_CHECK(set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1, "TCP_NODELAY"));
  // A host that vanishes is noticed after 35 s even if nothing is sent to it. No TCP_USER_TIMEOUT:
  // it would also end connections to a peer that computes and does not read for that long.
  ANYCCL_CHECK(set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1, "SO_KEEPALIVE"));
  ANYCCL_CHECK(set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, 15, "TCP_KEEPIDLE"));
  ANYCCL_CHECK(set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, 5, "TCP_KEEPINTVL"));
  ANYCCL_CHECK(set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 4, "TCP_KEEPCNT"));
  // Buffer sizes are left to the kernel: it grows them as needed, up to more than we could set.
  return set_congestion(fd, congestion);
}

std::string congestion_of(int fd) {
  char name[32] = {};
  socklen_t length = sizeof name - 1;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &length) != 0) return "unknown";
  return name;
}

class TcpSocket final : public fabric::SocketKind {
 public:
  explicit TcpSocket(std::string congestion) : congestion_(std::move(congestion)) {}
  std::string name(int fd) const override {
    return fd < 0 ? std::string("tcp") : "tcp/" + congestion_of(fd);  // on demand
  }
  Status set_up(int fd) const override { return tcp::set_up(fd, congestion_); }
  bool all_delivered(int fd) const override {
    int unacknowledged = 0;
    return ::ioctl(fd, SIOCOUTQ, &unacknowledged) != 0 || unacknowledged == 0;
  }
  bool carries_descriptors() const override { return false; }

 private:
  const std::string congestion_;
};

}  // namespace

std::unique_ptr<const fabric::SocketKind> tcp_socket(std::string congestion) {
  return std::make_unique<TcpSocket>(std::move(congestion));
}

Result<MadeTransport> make_tcp_transport(std::vector<fabric::PeerChannel> peers,
                                         const TransportSetup& setup) {
  MadeTransport made;
  ANYCCL_TRY(made.transport, sockets::make_socket_transport(setup.context, std::move(peers)));
  return made;
}

}  // namespace anyccl::tcp
