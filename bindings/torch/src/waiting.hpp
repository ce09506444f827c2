#pragma once
// Waits: the rest of a time limit, the interpreter meanwhile, and Python's signals.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>

namespace anyccl::torch {

using Clock = std::chrono::steady_clock;

/// When so much time has passed; never, if the clock does not go so far.
inline Clock::time_point deadline_after(std::chrono::milliseconds time) {
  const auto now = Clock::now();
  const auto most =
      std::chrono::duration_cast<std::chrono::milliseconds>(Clock::time_point::max() - now);
  return time >= most ? Clock::time_point::max() : now + time;
}

/// Until `deadline`; at least `least`.
inline std::chrono::milliseconds time_left(Clock::time_point deadline,
                                           std::chrono::milliseconds least) {
  return std::max(std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()),
                  least);
}
/// Returns it in the library's form, for which 0 is no limit: at least 1, also for 0 and less.
inline unsigned int limit_of(std::chrono::milliseconds time) {
  return static_cast<unsigned int>(
      std::clamp<std::int64_t>(time.count(), 1, std::numeric_limits<unsigned int>::max()));
}

/// Releases the interpreter, if this thread has it, while this thread waits.
class GilReleased {
 public:
  GilReleased();
  ~GilReleased();
  GilReleased(const GilReleased&) = delete;
  GilReleased& operator=(const GilReleased&) = delete;

 private:
  void* state_ = nullptr;
};

/// How long a wait may keep Python's main thread from its signals. Short enough for a person, long
/// enough that a rank which waits for minutes sleeps nearly all the time.
constexpr std::chrono::milliseconds kSignalTime{500};
/// Whether signals are for this thread.
bool is_main_thread();
/// In the main thread: runs Python's handlers of signals that have come. Throws what they raise,
/// such as KeyboardInterrupt.
void check_signals();

}  // namespace anyccl::torch
