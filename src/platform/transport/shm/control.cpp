#include "platform/transport/shm/control.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "base/error.hpp"

namespace anyccl::shm {

Status ControlSocket::send(const ControlMessage& message, std::array<int, 2> fds,
                           Deadline deadline) {
  const auto* bytes = reinterpret_cast<const char*>(&message);
  std::size_t done = 0;
  while (done < sizeof message) {
    iovec part{const_cast<char*>(bytes) + done, sizeof message - done};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    alignas(cmsghdr) char room[CMSG_SPACE(2 * sizeof(int))] = {};
    if (done == 0 && fds[0] >= 0) {
      const std::size_t count = fds[1] >= 0 ? 2 : 1;
      header.msg_control = room;
      header.msg_controllen = CMSG_SPACE(count * sizeof(int));
      cmsghdr* item = CMSG_FIRSTHDR(&header);
      item->cmsg_level = SOL_SOCKET;
      item->cmsg_type = SCM_RIGHTS;
      item->cmsg_len = CMSG_LEN(count * sizeof(int));
      std::memcpy(CMSG_DATA(item), fds.data(), count * sizeof(int));
    }
    const ssize_t n = ::sendmsg(fd_.get(), &header, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n >= 0) {
      done += static_cast<std::size_t>(n);
      continue;
    }
    if (errno == EINTR) continue;
    if (errno == EPIPE || errno == ECONNRESET) return error(Code::remote_error, "it went away");
    if (errno != EAGAIN) return system_error(errno, "send to it");
    if (deadline.passed()) return error(Code::timeout, "it does not read its control socket");
    pollfd wait{fd_.get(), POLLOUT, 0};
    ::poll(&wait, 1, deadline.poll_ms());
  }
  return {};
}

ControlSocket::Got ControlSocket::receive(ControlMessage& message, std::array<UniqueFd, 2>& fds) {
  if (!fd_) return Got::end;
  while (filled_ < sizeof partial_) {
    iovec part{reinterpret_cast<char*>(&partial_) + filled_, sizeof partial_ - filled_};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    alignas(cmsghdr) char room[CMSG_SPACE(2 * sizeof(int))] = {};
    header.msg_control = room;
    header.msg_controllen = sizeof room;
    const ssize_t n = ::recvmsg(fd_.get(), &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return Got::nothing;
    if (n <= 0) return Got::end;
    for (cmsghdr* item = CMSG_FIRSTHDR(&header); item != nullptr;
         item = CMSG_NXTHDR(&header, item)) {
      if (item->cmsg_level != SOL_SOCKET || item->cmsg_type != SCM_RIGHTS) continue;
      const std::size_t count = (item->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (std::size_t i = 0; i < count && i < 2; ++i) {
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(item) + i * sizeof(int), sizeof fd);
        partial_fds_[i].reset(fd);
      }
    }
    filled_ += static_cast<std::size_t>(n);
  }
  filled_ = 0;
  message = partial_;
  message.text[sizeof message.text - 1] = '\0';
  fds = std::move(partial_fds_);
  partial_fds_ = {};
  return Got::message;
}

Status ControlSocket::await(ControlMessage& message, std::array<UniqueFd, 2>& fds,
                            Deadline deadline) {
  for (;;) {
    const Got got = receive(message, fds);
    if (got == Got::message) return {};
    if (got == Got::end) return error(Code::remote_error, "it went away");
    if (deadline.passed()) return error(Code::timeout, "it does not answer");
    pollfd wait{fd_.get(), POLLIN, 0};
    ::poll(&wait, 1, deadline.poll_ms());
  }
}

}  // namespace anyccl::shm
