#pragma once
// The monitor counts the ranks on this host and tells whether they are more than its cores. A
// process has one. Its communicators register their ranks, and threads that wait ask it whether to
// spin.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "base/private_fd.hpp"
#include "platform/probe/contention.hpp"

namespace anyccl::probe {

/// How many ranks all jobs have on this host: ranks that spin take cores from each other, whatever
/// communicators they are in. A process shows how many it has in the name of an abstract socket,
/// which the kernel lists and drops when the process ends. So only ranks in the same network
/// namespace are seen; those of this process's communicators that are in others are known.
///
/// Any thread.
class OversubscriptionMonitor {
 public:
  static OversubscriptionMonitor& of_process();

  /// As long as it lives, this process has at least this many.
  class Registration {
   public:
    Registration() = default;
    Registration(OversubscriptionMonitor& monitor, int ranks, long beside, std::uint64_t generation)
        : monitor_(&monitor), ranks_(ranks), beside_(beside), generation_(generation) {}
    Registration(Registration&& other) noexcept { *this = std::move(other); }
    /// Swaps the two: the registration that was here ends with `other`.
    Registration& operator=(Registration&& other) noexcept {
      std::swap(monitor_, other.monitor_);
      std::swap(ranks_, other.ranks_);
      std::swap(beside_, other.beside_);
      std::swap(generation_, other.generation_);
      return *this;
    }
    ~Registration() {
      if (monitor_ != nullptr) monitor_->leave(ranks_, beside_, generation_);
    }

   private:
    OversubscriptionMonitor* monitor_ = nullptr;
    int ranks_ = 0;
    long beside_ = 0;
    std::uint64_t generation_ = 0;
  };
  /// `on_host`: how many are known to be on this host. `beside`: how many more are known to be in
  /// other network namespaces of this machine. If those are more than it has cores, they are not
  /// counted now.
  Registration add(int ranks, long on_host = 0, long beside = 0);
  /// Counts them anew, unless that was done lately.
  void refresh();
  /// Calls refresh() once in 1024 times, for who calls it very often.
  void refresh_sometimes() {
    if (calls_.fetch_add(1, std::memory_order_relaxed) % 1024 == 0) refresh();
  }
  /// Whether there were more than cores when they were counted last.
  bool is_oversubscribed() const { return oversubscribed_.load(std::memory_order_relaxed); }

  /// How many times longer a wait is than with up to four ranks per core, as ranks take turns.
  int crowding() const { return crowding_.load(std::memory_order_relaxed); }

  /// The number counted last.
  long ranks() const { return ranks_.load(std::memory_order_relaxed); }
  Contention& contention() { return contention_; }

 private:
  using Clock = std::chrono::steady_clock;
  /// Does nothing in a child that was forked since `generation`.
  void leave(int ranks, long beside, std::uint64_t generation);
  void note(long ranks);
  /// Does not wait: sets when refresh() counts next, `time` after `now`, within fixed bounds.
  void wait_for(Clock::time_point now, std::chrono::nanoseconds time);
  void show_most();

  std::mutex mutex_;
  PrivateFd socket_;
  std::multiset<int> registered_;  // ranks of each
  std::multiset<long> beside_{0};  // those in other network namespaces
  std::atomic<long> most_beside_{0};
  int shown_ = 0;
  std::uint64_t generation_ = 0;  // a forked child has none of its parent's ranks
  std::atomic<std::uint64_t> calls_{0};
  std::atomic<bool> oversubscribed_{false};
  std::atomic<long> ranks_{0};
  std::atomic<int> crowding_{1};
  std::atomic<Clock::rep> next_{0};
  Contention contention_{*this};
};

/// The ranks shown in a text like /proc/net/unix.
long count_ranks(const std::string& sockets);

}  // namespace anyccl::probe
