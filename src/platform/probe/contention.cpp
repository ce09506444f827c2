#include "platform/probe/contention.hpp"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <cstdio>

#include "platform/probe/oversubscription.hpp"
#include "platform/probe/text_file.hpp"

namespace anyccl::probe {
namespace {

using namespace std::chrono_literals;
using Duration = Contention::Clock::duration;
// Preemptions that are so close to each other are contention, which is remembered for so long.
// To notice it anew costs some time slices.
constexpr Duration kAgain = 100ms, kShortest = 500ms, kLongest = 2s;
// Ranks that share cores hand them to each other within this, unless they have much to do. Where a
// turn of all takes longer, this is times crowding().
constexpr Duration kLongYield = 1ms;
constexpr int kTimedYields = 8, kLongYields = 3;

/// Changes with each interrupt of the timer, some ms apart. A tenth of the cost of the exact clock.
long timer_ticks() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
  return time.tv_nsec;
}

Contention::Clock::rep count(Contention::Clock::time_point time) {
  return time.time_since_epoch().count();
}

}  // namespace

long count_runnable(const std::string& load) {
  long runnable = 0;
  std::sscanf(load.c_str(), "%*s %*s %*s %ld/", &runnable);
  return runnable;
}

void Contention::yield() {
  const int timed = timed_yields_.load(std::memory_order_relaxed);
  if (timed > 0) {
    timed_yields_.store(timed - 1, std::memory_order_relaxed);
    const auto before = Clock::now();
    ::sched_yield();
    const auto now = Clock::now();
    if (now - before > ranks_.crowding() * kLongYield) note_long_yield(now);
    return;
  }
  const long before = timer_ticks();
  ::sched_yield();
  if (timer_ticks() != before) timed_yields_.store(kTimedYields, std::memory_order_relaxed);
}

/// Ranks keep a core for long, too, with large messages, and then those that wait must not sleep:
/// they are next. So this only counts if more threads want a core than there are ranks, and not
/// just once: that may be a thread of the kernel.
void Contention::note_long_yield(Clock::time_point now) {
  // Many ranks have as many threads that are about to sleep.
  const long ranks = ranks_.ranks(), own = ranks_.crowding() > 1 ? 2 * ranks : ranks;
  const bool strangers = count_runnable(read_text("/proc/loadavg")) > own;
  const int in_a_row = strangers ? long_yields_.load(std::memory_order_relaxed) + 1 : 0;
  long_yields_.store(in_a_row, std::memory_order_relaxed);
  if (in_a_row >= kLongYields) notice(now);
}

void Contention::note_preemption(Clock::time_point now) {
  const auto last = preempted_.exchange(count(now), std::memory_order_relaxed);
  if (count(now) - last < kAgain.count()) notice(now);
}

void Contention::notice(Clock::time_point now) {
  if (is_noticed()) return;
  // If it was forgotten only just now, it is remembered for longer.
  const bool again = count(now) - until_.load(std::memory_order_relaxed) < (2 * kAgain).count();
  const auto lasts = again ? std::min(2 * lasts_.load(std::memory_order_relaxed), kLongest.count())
                           : kShortest.count();
  lasts_.store(lasts, std::memory_order_relaxed);
  until_.store(count(now) + lasts, std::memory_order_relaxed);
  long_yields_.store(0, std::memory_order_relaxed);
  noticed_.store(true, std::memory_order_relaxed);
}

void Contention::expire(Clock::time_point now) {
  if (count(now) >= until_.load(std::memory_order_relaxed))
    noticed_.store(false, std::memory_order_relaxed);
}

}  // namespace anyccl::probe
