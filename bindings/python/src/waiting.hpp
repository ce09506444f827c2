#pragma once
// Waits that let Python look after its signals, and times of users.

#include <optional>

#include "error.hpp"

namespace anyccl::python {

using Seconds = std::optional<double>;  // none: as long as the operation may take

/// How long a wait may keep Python from its signals, in milliseconds. Short enough for a person,
/// long enough that a rank which waits for minutes sleeps nearly all the time.
constexpr unsigned kSignalTime = 500;

/// In milliseconds, as timeout_ms of a call: 0 for nothing. Raises InvalidArgument unless it is
/// more than 0 and at most 4000000; infinity is no limit.
unsigned milliseconds(Seconds seconds);

/// Calls `wait`(milliseconds) until it returns true, without the interpreter lock, with a look at
/// Python's signals in between. False if that takes longer than `timeout`. Raises what a signal
/// handler raises.
template <typename Wait>
bool wait_in_slices(Seconds timeout, const Wait& wait);

/// What is left of a timeout.
class Countdown {
 public:
  explicit Countdown(Seconds timeout);
  bool is_over() const;
  /// Until it is over, at most kSignalTime.
  unsigned next_slice() const;

 private:
  std::optional<std::int64_t> end_ns_;  // of the steady clock
};

template <typename Wait>
bool wait_in_slices(Seconds timeout, const Wait& wait) {
  const Countdown countdown(timeout);
  for (;;) {
    bool done = false;
    {
      const Unlocked released;
      done = wait(countdown.next_slice());
    }
    if (done) return true;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (countdown.is_over()) return false;
  }
}

}  // namespace anyccl::python
