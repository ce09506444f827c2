#pragma once
// The interpreter lock, and the end of the interpreter.

#include <nanobind/nanobind.h>

namespace anyccl::python {

/// To be called once, when the module is loaded.
void watch_exit();
/// The interpreter is about to end, in this thread: from now on objects that die leave
/// communicators, and the arrays of operations, to the end of the process, for which the library
/// is prepared; and Python functions that threads of the library would call do not start. Waits up
/// to a second for those that run.
void begin_exit();
bool is_exiting();

/// Releases the interpreter lock while it lives. A thread that returns to an ended interpreter
/// stays here: Python would end the thread by unwinding it, and C++ the process for that.
class Unlocked {
 public:
  Unlocked() : state_(PyEval_SaveThread()) {}
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;
  ~Unlocked();

 private:
  PyThreadState* state_;
};

/// Calls `body` with the interpreter lock, in a thread of the library, for which a Python function
/// is to run. Once the interpreter ends it does not return. `body` must not throw.
void with_interpreter(void (*body)(void*), void* argument);
template <typename Body>
void with_interpreter(Body& body) {
  with_interpreter([](void* argument) { (*static_cast<Body*>(argument))(); }, &body);
}
/// Whether this thread is inside with_interpreter(), so perhaps inside the library's own progress:
/// waiting for an operation may never end here.
bool is_in_callback();

/// While it lives, calls of this thread that wait look at Python's signals, and end where a handler
/// raises. With the interpreter lock.
class EndsAtSignals {
 public:
  EndsAtSignals();
  EndsAtSignals(const EndsAtSignals&) = delete;
  EndsAtSignals& operator=(const EndsAtSignals&) = delete;
  ~EndsAtSignals();
  /// Raises what a handler has raised meanwhile.
  static void raise_pending();

 private:
  bool before_;
};

}  // namespace anyccl::python
