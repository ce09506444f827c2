#include "base/fork.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <vector>

namespace anyccl {
namespace {

/// Never destroyed: forks may come after main().
struct Closing {
  std::mutex mutex;
  std::vector<int> fds;
  std::vector<std::mutex*> held;
};
/// The descriptors that forked children close, and the mutexes that are held across forks.
Closing& closing() {
  static Closing* const all = new Closing;
  return *all;
}

// The locks are held across fork, so that the child finds the lists whole.
void before_fork() {
  closing().mutex.lock();
  for (std::mutex* const mutex : closing().held) mutex->lock();
}
void after_fork_in_parent() {
  for (std::mutex* const mutex : closing().held) mutex->unlock();
  closing().mutex.unlock();
}
void after_fork_in_child() {
  detail::forks.fetch_add(1, std::memory_order_relaxed);
  for (const int fd : closing().fds) ::close(fd);
  closing().fds.clear();
  after_fork_in_parent();
}

}  // namespace

constinit std::atomic<std::uint64_t> detail::forks{0};

void watch_forks() {
  static const int watching =
      ::pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  static_cast<void>(watching);
}

void close_in_children(int fd) {
  const std::lock_guard lock(closing().mutex);
  closing().fds.push_back(fd);
}

void keep_in_children(int fd) {
  const std::lock_guard lock(closing().mutex);
  std::erase(closing().fds, fd);
}

void hold_across_forks(std::mutex& mutex) {
  watch_forks();
  const std::lock_guard lock(closing().mutex);
  closing().held.push_back(&mutex);
}

}  // namespace anyccl
