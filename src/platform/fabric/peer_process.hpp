#pragma once

#include <sys/types.h>

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

}  // namespace anyccl::fabric
