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
#include "interpreter.hpp"

namespace anyccl::python {

namespace nb = nanobind;

/// The result of a library call, with its message. Needs no interpreter.
struct Outcome {
  anycclResult_t code = anycclSuccess;
  std::string message;
  bool ok() const { return code == anycclSuccess; }
};
/// The outcome of a call that this thread has just made.
Outcome outcome_of(anycclResult_t code);

/// Raises the exception of anyccl.errors that belongs to `code`.
[[noreturn]] void raise(anycclResult_t code, const std::string& message);
[[noreturn]] inline void raise_invalid(const std::string& message) {
  raise(anycclInvalidArgument, message);
}
inline void raise_unless_ok(const Outcome& outcome) {
  if (!outcome.ok()) raise(outcome.code, outcome.message);
}
/// Raises `exception`, an exception of any kind.
[[noreturn]] void raise_object(nb::handle exception);
/// The exception itself, not raised.
nb::object exception_of(const Outcome& outcome);

/// Calls the library without the interpreter lock. A signal whose handler raises ends the call, and
/// the communicator with it, where it waits for other ranks; that is raised here.
template <typename Call>
Outcome unlocked(const Call& call) {
  Outcome outcome;
  {
    const EndsAtSignals listens;
    const Unlocked released;
    outcome = outcome_of(call());
  }
  EndsAtSignals::raise_pending();
  return outcome;
}

}  // namespace anyccl::python
