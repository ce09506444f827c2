#pragma once

#include <chrono>

namespace anyccl::torch {

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
