#include "platform/fabric/bell.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "base/fork.hpp"
#include "base/unique_fd.hpp"

namespace anyccl::fabric {
namespace {

/// Event descriptors that no thread uses now. A forked child has its own: it shares those of its
/// parent.
class Spare {
 public:
  static Spare& of_process() {
    static Spare* const spare = new Spare;  // never destroyed: threads may outlive main()
    return *spare;
  }
  /// -1: there is no descriptor left.
  int take() {
    const std::lock_guard lock(mutex_);
    if (generation_ != fork_generation()) forget_parents();
    if (free_.empty()) return ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    const int fd = free_.back();
    free_.pop_back();
    return fd;
  }
  void give(int fd) {
    const std::lock_guard lock(mutex_);
    free_.push_back(fd);
  }

 private:
  Spare() { watch_forks(); }
  void forget_parents() {
    for (const int fd : std::exchange(free_, {})) ::close(fd);
    generation_ = fork_generation();
  }

  std::mutex mutex_;
  std::vector<int> free_;
  std::uint64_t generation_ = fork_generation();
};

}  // namespace

std::optional<int> Bell::listen() {
  const std::lock_guard lock(mutex_);
  if (rung_) return {};
  return fd_ = Spare::of_process().take();
}

void Bell::answer() {
  const std::lock_guard lock(mutex_);
  const int fd = std::exchange(fd_, -1);
  if (fd >= 0) {
    std::uint64_t rings = 0;
    [[maybe_unused]] const ssize_t taken = ::read(fd, &rings, sizeof rings);
    Spare::of_process().give(fd);
  }
  rung_ = false;
}

void Bell::ring() {
  const std::lock_guard lock(mutex_);
  rung_ = true;
  if (fd_ < 0) return;
  const std::uint64_t one = 1;
  // Cannot fail: the counter is far from its limit.
  [[maybe_unused]] const ssize_t written = ::write(fd_, &one, sizeof one);
}

}  // namespace anyccl::fabric
