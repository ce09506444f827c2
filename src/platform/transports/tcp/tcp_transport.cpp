#include "platform/transports/tcp/tcp_transport.hpp"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>

#include "base/error.hpp"
#include "platform/transports/sockets/socket_transport.hpp"

namespace anyccl::tcp {
namespace {

Status set_option(int fd, int level, int option, int value, const char* name) {
  if (::setsockopt(fd, level, option, &value, sizeof value) == 0) return {};
  return system_error(errno, "set {} on a connection to a peer", name);
}

/// Bbr, a common default, paces what it sends: over loopback and virtual links it moved 16 to 43
/// Gbit/s where cubic moved 94 to 107. Where the system does not allow it, its default stays.
void prefer_cubic(int fd) {
  constexpr char kCubic[] = "cubic";
  ::setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, kCubic, sizeof kCubic - 1);
}

/// The system finds out by itself that a host has gone to which nothing is under way: after about
/// half the limit without a word it asks, three times a sixth of it apart, and then the limit is
/// over. It counts in seconds.
Status set_keepalive(int fd, int limit_s) {
  const int interval = std::max(1, limit_s / 6), count = std::clamp(limit_s - 1, 1, 3);
  const int idle = std::max(1, limit_s - count * interval);
  ANYCCL_CHECK(set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1, "SO_KEEPALIVE"));
  ANYCCL_CHECK(set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, idle, "TCP_KEEPIDLE"));
  ANYCCL_CHECK(set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, interval, "TCP_KEEPINTVL"));
  return set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, count, "TCP_KEEPCNT");
}

/// Otherwise the system repeats what is not acknowledged, and asks whether a peer that does not
/// read has room again, more and more rarely, to once in two minutes. It then notices as late that
/// a host has gone, or is back, perhaps after the limit. Linux has this since 6.15; before, it
/// stays so.
void limit_backoff(int fd, int limit_s) {
  constexpr int kRtoMaxMs = 44;  // TCP_RTO_MAX_MS, which headers do not have yet
  const int most_ms = std::clamp(limit_s * 1000 / 6, 1000, 120'000);
  ::setsockopt(fd, IPPROTO_TCP, kRtoMaxMs, &most_ms, sizeof most_ms);
}

Status set_up(int fd, int limit_s) {
  ANYCCL_CHECK(set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1, "TCP_NODELAY"));
  ANYCCL_CHECK(set_keepalive(fd, limit_s));
  limit_backoff(fd, limit_s);
  prefer_cubic(fd);
  // Buffer sizes are left to the kernel: it grows them as needed, up to more than we could set.
  return {};
}

/// No TCP_USER_TIMEOUT: it also ends the connection to a peer that computes for that long and does
/// not read, whose host answers. Here the host must have failed to answer twice, and for the whole
/// limit. A connection that has been idle asks by keepalive before half the limit is over, so the
/// answers that are missing are of the second half, whatever was sent last.
bool is_silent(int fd, int limit_s) {
  constexpr int kUnanswered = 2;
  tcp_info info{};
  socklen_t length = sizeof info;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return false;
  const bool repeats = info.tcpi_unacked > 0 && info.tcpi_retransmits >= kUnanswered;
  return (repeats || info.tcpi_probes >= kUnanswered) &&
         info.tcpi_last_ack_recv >= static_cast<std::uint32_t>(limit_s) * 1000;
}

std::string congestion_of(int fd) {
  char name[32] = {};
  socklen_t length = sizeof name - 1;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &length) != 0) return "unknown";
  return name;
}

class TcpSocket final : public link::SocketKind {
 public:
  explicit TcpSocket(int limit_s) : limit_s_(limit_s) {}
  std::string name(int fd) const override {
    return fd < 0 ? std::string("tcp") : "tcp/" + congestion_of(fd);  // on demand
  }
  Status set_up(int fd) const override { return tcp::set_up(fd, limit_s_); }
  bool is_silent(int fd) const override { return tcp::is_silent(fd, limit_s_); }
  bool all_delivered(int fd) const override {
    int unacknowledged = 0;
    return ::ioctl(fd, SIOCOUTQ, &unacknowledged) != 0 || unacknowledged == 0;
  }
  bool carries_descriptors() const override { return false; }

 private:
  const int limit_s_;
};

}  // namespace

std::unique_ptr<const link::SocketKind> tcp_socket(int ack_timeout_s) {
  return std::make_unique<TcpSocket>(ack_timeout_s);
}

Result<MadeTransport> make_tcp_transport(std::vector<link::PeerChannel> peers,
                                         const TransportSetup& setup) {
  MadeTransport made;
  ANYCCL_TRY(made.transport, sockets::make_socket_transport(setup.context, std::move(peers)));
  return made;
}

}  // namespace anyccl::tcp
