#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>

#include "base/private_fd.hpp"

namespace anyccl {

/// How many ranks all jobs have on this host: ranks that spin take cores from each other, whatever
/// communicators they are in. A process shows how many it has in the name of an abstract socket,
/// which the kernel lists and drops when the process ends. So only ranks in the same network
/// namespace are seen.
///
/// Any thread.
class Census {
 public:
  static Census& of_process();

  /// This process has at least so many.
  void enter(int ranks);
  /// Counts them anew, unless that was done lately.
  void look();
  /// Whether there were more than cores when somebody looked last.
  bool is_crowded() const { return crowded_.load(std::memory_order_relaxed); }

 private:
  std::mutex mutex_;
  PrivateFd socket_;
  int ranks_ = 0;
  std::atomic<bool> crowded_{false};
  std::atomic<std::chrono::steady_clock::rep> next_{0};
};

/// The ranks shown in a text like /proc/net/unix.
long count_ranks(const std::string& sockets);

}  // namespace anyccl
