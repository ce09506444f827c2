#pragma once
// A thread notes here that it is in code of the program that the library has called: an operator or
// a function in a stream. The C interface asks for that before a call waits, as a thread must not
// wait for itself.

#include <cstdint>
#include <exception>
#include <string_view>

#include "base/error.hpp"

namespace anyccl {

/// Code of the program that the library calls, and that must not wait for everything.
enum class Callback : std::uint8_t { none, reduction, stream_function };

namespace detail {
// In the space that is set aside at start, so that asking costs one load.
[[gnu::tls_model("initial-exec")]] extern thread_local constinit Callback callback_here;
}  // namespace detail

/// Which of it this thread is in.
inline Callback callback_here() {
  return detail::callback_here;
}

/// While it lives, this thread is in such code.
class InCallback {
 public:
  explicit InCallback(Callback what) : before_(detail::callback_here) {
    detail::callback_here = what;
  }
  ~InCallback() { detail::callback_here = before_; }
  InCallback(const InCallback&) = delete;
  InCallback& operator=(const InCallback&) = delete;

 private:
  const Callback before_;
};

/// Calls function(argument), which belongs to the program; what it throws is an error of `what`.
inline Status call_program(std::string_view what, void (*function)(void*), void* argument) {
  try {
    function(argument);
    return {};
  } catch (const std::exception& e) {
    return error(Code::invalid_usage, "{} threw: {}", what, e.what());
  } catch (...) {
    return error(Code::invalid_usage, "{} threw something that is not a std::exception", what);
  }
}

}  // namespace anyccl
