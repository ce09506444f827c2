#include "platform/fabric/peer_process.hpp"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.hpp"

namespace anyccl::fabric {

Result<PeerProcess> PeerProcess::of(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
    return system_error(errno, "who is at the other end of a local socket");
  UniqueFd handle(static_cast<int>(::syscall(SYS_pidfd_open, peer.pid, 0)));
  if (!handle) return system_error(errno, "open process {}", peer.pid);
  PeerProcess process;
  process.handle = PrivateFd(std::move(handle));
  process.pid = peer.pid;
  return process;
}

}  // namespace anyccl::fabric
