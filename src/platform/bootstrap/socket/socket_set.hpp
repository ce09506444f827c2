#pragma once
// A root server waits for many ranks at once, and a socket set tells it which of their sockets are
// ready. Each root server has one, and uses it in its own thread.

#include <cstdint>
#include <vector>

#include "anyccl/status.hpp"
#include "base/unique_fd.hpp"

namespace anyccl::bootstrap {

/// Many sockets of which few are ready at a time: finding those costs nothing for the others
/// (epoll).
class SocketSet {
 public:
  /// Errors: system_error.
  static Result<SocketSet> make();

  /// A descriptor for poll(2) that is readable when one of the sockets is ready.
  int fd() const { return epoll_.get(); }
  /// Waits for `events` of poll(2) at `socket` from now on. Errors: system_error.
  Status watch(int socket, std::uint32_t events);
  /// Before `socket` is closed: a forked child may have a copy that keeps it open.
  void forget(int socket);
  /// Those that are ready now or broken, some hundred at most: the others are next.
  std::vector<int> ready_sockets() const;

 private:
  explicit SocketSet(UniqueFd epoll) : epoll_(std::move(epoll)) {}
  UniqueFd epoll_;
};

}  // namespace anyccl::bootstrap
