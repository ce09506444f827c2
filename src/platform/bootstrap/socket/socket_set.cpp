#include "platform/bootstrap/socket/socket_set.hpp"

#include <poll.h>
#include <sys/epoll.h>

#include "base/error.hpp"

namespace anyccl::bootstrap {

static_assert(EPOLLIN == POLLIN && EPOLLOUT == POLLOUT);

Result<SocketSet> SocketSet::make() {
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return system_error(errno, "epoll_create1");
  return SocketSet(std::move(epoll));
}

Status SocketSet::watch(int socket, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.fd = socket;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket, &event) == 0) return {};
  if (errno == EEXIST && ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, socket, &event) == 0) return {};
  return system_error(errno, "epoll_ctl");
}

void SocketSet::forget(int socket) {
  // Fails if it was never watched.
  static_cast<void>(::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, socket, nullptr));
}

std::vector<int> SocketSet::ready_sockets() const {
  epoll_event events[256];
  const int count = ::epoll_wait(epoll_.get(), events, std::size(events), 0);
  std::vector<int> sockets;
  for (int i = 0; i < count; ++i) sockets.push_back(events[i].data.fd);
  return sockets;
}

}  // namespace anyccl::bootstrap
