#include "interpreter.hpp"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "anyccl/interrupt.h"

namespace anyccl::python {
namespace {

// What begin_exit() writes pairs with what with_interpreter() reads: either that thread sees that
// the interpreter ends, or begin_exit() sees that it runs. Sequentially consistent, therefore.
std::atomic<bool> exiting = false;
std::atomic<int> running = 0;
std::thread::id ending_thread;                              // written before `exiting`
thread_local int depth = 0;                                 // of with_interpreter()
thread_local bool listens = false;                          // see EndsAtSignals
thread_local std::optional<nanobind::python_error> caught;  // from a handler, during a call

/// True if the interpreter is ending and lets only another thread go on.
bool is_interpreter_over() {
#if PY_VERSION_HEX >= 0x030d0000
  const bool finalizing = Py_IsFinalizing() != 0;
#else
  const bool finalizing = _Py_IsFinalizing() != 0;
#endif
  return (finalizing || Py_IsInitialized() == 0) && std::this_thread::get_id() != ending_thread;
}

/// Runs handlers of signals while an EndsAtSignals of this thread lives. Returns 1, which ends the
/// call, if one has raised. For anycclThreadInterrupt.
int look_at_signals(void*) {
  if (!listens || exiting) return 0;
  int ends = caught ? 1 : 0;
  auto look = [&] {
    if (PyErr_CheckSignals() == 0) return;
    caught.emplace();
    ends = 1;
  };
  if (ends == 0) with_interpreter(look);
  return ends;
}

[[noreturn]] void stay_here() {
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

}  // namespace

void watch_exit() {
  pthread_atfork(nullptr, nullptr, [] { running = depth > 0 ? 1 : 0; });
}

void begin_exit() {
  using Clock = std::chrono::steady_clock;
  ending_thread = std::this_thread::get_id();
  exiting = true;
  const Unlocked released;
  const Clock::time_point end = Clock::now() + std::chrono::seconds(1);
  while (running > 0 && Clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

bool is_exiting() {
  return exiting;
}

Unlocked::~Unlocked() {
  if (is_interpreter_over()) stay_here();
  try {
    PyEval_RestoreThread(state_);
  } catch (...) {  // a forced unwind: it ended while this thread waited for the lock
    stay_here();
  }
}

void with_interpreter(void (*body)(void*), void* argument) {
  if (++depth == 1) ++running;
  if (exiting && std::this_thread::get_id() != ending_thread) {
    if (depth == 1) --running;
    stay_here();
  }
  try {
    const PyGILState_STATE state = PyGILState_Ensure();
    body(argument);
    PyGILState_Release(state);
  } catch (...) {  // a forced unwind: Python ends threads this way
    stay_here();
  }
  if (--depth == 0) --running;
}

bool is_in_callback() {
  return depth > 0;
}

EndsAtSignals::EndsAtSignals() : before_(std::exchange(listens, true)) {
  static thread_local const anycclResult_t told = anycclThreadInterrupt(look_at_signals, nullptr);
  static_cast<void>(told);
}

EndsAtSignals::~EndsAtSignals() {
  listens = before_;
}

void EndsAtSignals::raise_pending() {
  if (!caught) return;
  nanobind::python_error error = std::move(*caught);
  caught.reset();
  throw error;
}

}  // namespace anyccl::python
