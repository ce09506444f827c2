#pragma once
// A Contention notices that others take the cores of this process from its waiting threads, so that
// these yield or sleep rather than spin. The process has one, in its OversubscriptionMonitor.

#include <atomic>
#include <chrono>
#include <string>

namespace anyccl::probe {

class OversubscriptionMonitor;

/// Whether others compete with the waiting threads of this process for its cores: other programs,
/// the program's own threads, or a quota that is used up. They are noticed by what they do: a
/// thread that spins or yields does not get its core back at once.
///
/// Any thread.
class Contention {
 public:
  /// `ranks`: knows how many of the threads that want a core are ranks.
  explicit Contention(const OversubscriptionMonitor& ranks) : ranks_(ranks) {}

  using Clock = std::chrono::steady_clock;
  bool is_noticed() const { return noticed_.load(std::memory_order_relaxed); }
  /// Gives the core away, and notices if strangers kept it for long, several times in a row.
  void yield();
  /// A gap between two looks at the clock from which on another thread had the core meanwhile.
  static constexpr std::chrono::microseconds kPreempted{300};
  /// There was such a gap just now, while a thread spun. Noticed if there was another one lately.
  void note_preemption(Clock::time_point now);
  /// Forgets it, some time after it was noticed. Called by threads that wait.
  void expire(Clock::time_point now);

 private:
  void note_long_yield(Clock::time_point now);
  void notice(Clock::time_point now);

  const OversubscriptionMonitor& ranks_;
  std::atomic<bool> noticed_{false};
  std::atomic<int> timed_yields_{0};  // how many of the next yields are timed
  std::atomic<int> long_yields_{0};   // in a row, with strangers around
  std::atomic<Clock::rep> preempted_{0}, until_{0}, lasts_{0};
};

/// The threads that run or want to, in a text like /proc/loadavg.
long count_runnable(const std::string& load);

}  // namespace anyccl::probe
