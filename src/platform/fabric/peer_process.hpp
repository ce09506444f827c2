#pragma once

#include <sys/types.h>

#include <string>

#include "anyccl/status.hpp"
#include "base/private_fd.hpp"

namespace anyccl::fabric {

/// The process at the other end of a connected unix socket.
struct PeerProcess {
  /// Errors: system_error.
  static Result<PeerProcess> of(int socket);

  PrivateFd handle;  ///< A pidfd: readable when the process has ended.
  pid_t pid = 0;
};

/// How the process at the other end of a unix socket has ended, as " (killed by signal 9, Killed)" or
/// " (exit code 1)"; empty: it has not, or the kernel does not say. Once it has been waited for only
/// Linux 6.16 or newer knows.
std::string how_ended(int socket);

}  // namespace anyccl::fabric
