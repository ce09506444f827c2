#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <utility>

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

  /// As long as it lives, this process has at least so many.
  class Stay {
   public:
    Stay() = default;
    Stay(Census& census, int ranks, std::uint64_t generation)
        : census_(&census), ranks_(ranks), generation_(generation) {}
    Stay(Stay&& other) noexcept { *this = std::move(other); }
    Stay& operator=(Stay&& other) noexcept {
      std::swap(census_, other.census_);
      std::swap(ranks_, other.ranks_);
      std::swap(generation_, other.generation_);
      return *this;
    }
    ~Stay() {
      if (census_ != nullptr) census_->leave(ranks_, generation_);
    }

   private:
    Census* census_ = nullptr;
    int ranks_ = 0;
    std::uint64_t generation_ = 0;
  };
  Stay enter(int ranks);
  /// Counts them anew, unless that was done lately.
  void look();
  /// The same, for who calls it very often.
  void look_sometimes() {
    if (calls_.fetch_add(1, std::memory_order_relaxed) % 1024 == 0) look();
  }
  /// Whether there were more than cores when somebody looked last.
  bool is_crowded() const { return crowded_.load(std::memory_order_relaxed); }

 private:
  void leave(int ranks, std::uint64_t generation);
  void show_most();

  std::mutex mutex_;
  PrivateFd socket_;
  std::multiset<int> stays_;  // ranks of each
  int shown_ = 0;
  std::uint64_t generation_ = 0;  // a forked child has none of its parent's ranks
  std::atomic<std::uint64_t> calls_{0};
  std::atomic<bool> crowded_{false};
  std::atomic<std::chrono::steady_clock::rep> next_{0};
};

/// The ranks shown in a text like /proc/net/unix.
long count_ranks(const std::string& sockets);

}  // namespace anyccl
