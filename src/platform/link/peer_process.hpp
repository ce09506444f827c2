#pragma once
// PeerProcess names the process at the other end of a unix socket, and how_ended() says how that
// process has ended. Links and channels call them: the first for the shm transport, which reads the
// memory of a peer, and the second for reports of a peer that has died.

#include <sys/types.h>

#include <string>

#include "anyccl/status.hpp"
#include "base/private_fd.hpp"

namespace anyccl::link {

/// The process at the other end of a connected unix socket.
struct PeerProcess {
  /// Errors: system_error.
  static Result<PeerProcess> of(int socket);

  PrivateFd handle;  ///< A pidfd: readable when the process has ended.
  pid_t pid = 0;
};

/// How the process at the other end of a unix socket has ended, as " (killed by signal 9, Killed)"
/// or " (exit code 1)"; empty: it has not, or the kernel does not say. Once it has been waited for
/// only Linux 6.16 or newer knows.
std::string how_ended(int socket);

}  // namespace anyccl::link
