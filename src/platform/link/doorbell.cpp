#include "platform/link/doorbell.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "base/per_process.hpp"

namespace anyccl::link {
namespace {

/// Event descriptors that no thread uses now.
class Spare {
 public:
  /// -1: there is no descriptor left.
  int take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    const int fd = free_.back();
    free_.pop_back();
    return fd;
  }
  /// Keeps `fd` open for a later take(), however many it has.
  void give(int fd) {
    const std::lock_guard lock(mutex_);
    free_.push_back(fd);
  }

 private:
  std::mutex mutex_;
  std::vector<int> free_;
};

}  // namespace

std::optional<int> Doorbell::listen() {
  const std::lock_guard lock(mutex_);
  if (rung_) return {};
  return fd_ = per_process<Spare>().take();
}

void Doorbell::answer() {
  const std::lock_guard lock(mutex_);
  const int fd = std::exchange(fd_, -1);
  if (fd >= 0) {
    std::uint64_t rings = 0;
    [[maybe_unused]] const ssize_t taken = ::read(fd, &rings, sizeof rings);
    per_process<Spare>().give(fd);
  }
  rung_ = false;
}

void Doorbell::ring() {
  const std::lock_guard lock(mutex_);
  rung_ = true;
  if (fd_ < 0) return;
  const std::uint64_t one = 1;
  // Cannot fail: the counter is far from its limit.
  [[maybe_unused]] const ssize_t written = ::write(fd_, &one, sizeof one);
}

}  // namespace anyccl::link
