#include "platform/bootstrap/socket/wire.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <bit>

#include "base/error.hpp"

namespace anyccl::bootstrap {
namespace {

static_assert(std::endian::native == std::endian::little,
              "messages are sent as they lie in memory");

// send() and recv() take at most 0x7ffff000 bytes; smaller pieces make no difference.
constexpr std::size_t kMost = std::size_t{1} << 30;

bool must_wait(int number) {
  return number == EAGAIN || number == EWOULDBLOCK;
}

/// Returns remote_error if the peer has closed or reset the connection, else system_error.
Status lost_error(int number, std::string_view peer) {
  if (number == ECONNRESET || number == EPIPE)
    return error(Code::remote_error, "{} closed the connection", peer);
  return system_error(number, "connection to {}", peer);
}

/// One send or recv that is not interrupted: bytes moved, 0 when it would block.
Result<std::size_t> send_some(int fd, std::span<const std::byte> bytes, std::string_view peer) {
  for (;;) {
    const ssize_t n =
        ::send(fd, bytes.data(), std::min(bytes.size(), kMost), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) return static_cast<std::size_t>(n);
    if (must_wait(errno)) return std::size_t{0};
    if (errno != EINTR) return lost_error(errno, peer);
  }
}

Result<std::size_t> recv_some(int fd, std::span<std::byte> into, std::string_view peer) {
  for (;;) {
    const ssize_t n = ::recv(fd, into.data(), std::min(into.size(), kMost), MSG_DONTWAIT);
    if (n > 0) return static_cast<std::size_t>(n);
    if (n == 0) return lost_error(ECONNRESET, peer);
    if (must_wait(errno)) return std::size_t{0};
    if (errno != EINTR) return lost_error(errno, peer);
  }
}

}  // namespace

Status wait_for(int fd, short events, Deadline deadline, std::string_view peer) {
  for (;;) {
    pollfd entry{fd, events, 0};
    const int n = ::poll(&entry, 1, deadline.poll_ms());
    if (n > 0) return {};
    if (n < 0 && errno != EINTR) return system_error(errno, "poll for {}", peer);
    if (deadline.passed()) return error(Code::timeout, "no answer from {} in time", peer);
  }
}

Status send_all(int fd, std::span<const std::byte> bytes, Deadline deadline,
                std::string_view peer) {
  while (!bytes.empty()) {
    ANYCCL_TRY(const std::size_t n, send_some(fd, bytes, peer));
    bytes = bytes.subspan(n);
    if (n == 0) ANYCCL_CHECK(wait_for(fd, POLLOUT, deadline, peer));
  }
  return {};
}

Status Outbox::flush(int fd, std::string_view peer) {
  while (!empty()) {
    const std::span<const std::byte> left = sent_ < own_.size()
                                                ? std::span(own_).subspan(sent_)
                                                : std::span(*shared_).subspan(sent_ - own_.size());
    ANYCCL_TRY(const std::size_t n, send_some(fd, left, peer));
    if (n == 0) return {};
    sent_ += n;
  }
  return {};
}

Status Inbox::fill(int fd, std::string_view peer) {
  while (!full()) {
    ANYCCL_TRY(const std::size_t n, recv_some(fd, std::span(bytes_).subspan(received_), peer));
    if (n == 0) return {};
    received_ += n;
  }
  return {};
}

}  // namespace anyccl::bootstrap
