#pragma once
// Threads of the library wait for each other by a Condition in place of std::condition_variable:
// those of streams, events and background progress, and those that look up names.

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <mutex>

namespace anyccl {

/// A condition variable whose time limits are of CLOCK_MONOTONIC. With the C++ library that wheels
/// are built with, those of std::condition_variable are of CLOCK_REALTIME: when that is set back by
/// an hour, a wait takes an hour more.
class Condition {
 public:
  using Clock = std::chrono::steady_clock;

  Condition() {
    pthread_condattr_t attributes;
    ::pthread_condattr_init(&attributes);
    ::pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    ::pthread_cond_init(&condition_, &attributes);
    ::pthread_condattr_destroy(&attributes);
  }
  ~Condition() { ::pthread_cond_destroy(&condition_); }
  Condition(const Condition&) = delete;
  Condition& operator=(const Condition&) = delete;

  void notify_one() { ::pthread_cond_signal(&condition_); }
  void notify_all() { ::pthread_cond_broadcast(&condition_); }

  // With the lock; also without a reason, as those of std::condition_variable.
  void wait(std::unique_lock<std::mutex>& lock) {
    ::pthread_cond_wait(&condition_, lock.mutex()->native_handle());
  }
  void wait_until(std::unique_lock<std::mutex>& lock, Clock::time_point limit) {
    const auto since = limit.time_since_epoch();
    const auto seconds = std::chrono::floor<std::chrono::seconds>(since);
    const timespec time{static_cast<time_t>(seconds.count()),
                        static_cast<long>(std::chrono::nanoseconds(since - seconds).count())};
    ::pthread_cond_timedwait(&condition_, lock.mutex()->native_handle(), &time);
  }
  void wait_for(std::unique_lock<std::mutex>& lock, std::chrono::milliseconds time) {
    wait_until(lock, after(time));
  }
  template <typename Predicate>
  void wait(std::unique_lock<std::mutex>& lock, const Predicate& is_met) {
    while (!is_met()) wait(lock);
  }
  /// Whether it is met.
  template <typename Predicate>
  bool wait_for(std::unique_lock<std::mutex>& lock, std::chrono::milliseconds time,
                const Predicate& is_met) {
    const Clock::time_point limit = after(time);
    while (!is_met()) {
      if (Clock::now() >= limit) return false;
      wait_until(lock, limit);
    }
    return true;
  }

 private:
  static Clock::time_point after(std::chrono::milliseconds time) {
    const Clock::time_point now = Clock::now();
    const auto most = std::chrono::floor<std::chrono::milliseconds>(Clock::time_point::max() - now);
    return now + std::min(time, most);
  }

  pthread_cond_t condition_;
};

}  // namespace anyccl
