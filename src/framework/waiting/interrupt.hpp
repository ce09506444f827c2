#pragma once
// How a program ends waits of its own threads.

#include <chrono>

#include "base/deadline.hpp"

namespace anyccl {

/// A function of the program says whether a wait of this thread should end.
struct InterruptCheck {
  int (*check)(void* argument) = nullptr;  ///< Without one, waits go on.
  void* argument = nullptr;
};
[[gnu::tls_model(
    "initial-exec")]] extern thread_local constinit InterruptCheck interrupt_check_of_thread;

/// Asks the program now and then. One per wait.
class Interrupt {
 public:
  /// Whether it is time to ask. The first time is a while after the first call.
  bool is_due() {
    if (interrupt_check_of_thread.check == nullptr) return false;
    const bool is_due = next_.passed();
    if (is_due || next_.is_never()) next_ = Deadline::in(kTime);
    return is_due;
  }
  /// Asks. Without locks, as the program may call the library.
  static bool is_wanted() {
    const InterruptCheck mine = interrupt_check_of_thread;
    return mine.check != nullptr && mine.check(mine.argument) != 0;
  }

 private:
  static constexpr std::chrono::milliseconds kTime{100};
  Deadline next_;
};

}  // namespace anyccl
