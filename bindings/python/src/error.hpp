#pragma once
// How results of the library become exceptions of anyccl.errors.

#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>  // casts without them compile, and fail when they run
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <optional>
#include <string>
#include <utility>

#include "anyccl/anyccl.h"

namespace anyccl::python {

namespace nb = nanobind;

/// The result of a library call, with its message. Needs no interpreter.
struct Outcome {
  anycclResult_t code = anycclSuccess;
  std::string message;
  bool ok() const { return code == anycclSuccess; }
};
/// Of a call that this thread has just made.
Outcome outcome_of(anycclResult_t code);

/// Raises the exception of anyccl.errors that belongs to `code`.
[[noreturn]] void raise(anycclResult_t code, const std::string& message);
[[noreturn]] inline void raise_invalid(const std::string& message) {
  raise(anycclInvalidArgument, message);
}
inline void raise_unless_ok(const Outcome& outcome) {
  if (!outcome.ok()) raise(outcome.code, outcome.message);
}
/// The exception itself, not raised.
nb::object exception_of(const Outcome& outcome);

/// The interpreter is about to end, in this thread: from now on objects that die leave
/// communicators, and the arrays of operations, to the end of the process, for which the library
/// is prepared.
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

/// Calls the library without the interpreter lock.
template <typename Call>
Outcome unlocked(const Call& call) {
  const Unlocked released;
  return outcome_of(call());
}

}  // namespace anyccl::python
