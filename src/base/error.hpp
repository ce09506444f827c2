#pragma once
// How errors are made and passed up. Messages are written with fmt, once, where they are
// understood.

#include <fmt/core.h>

#include <cerrno>
#include <string>
#include <utility>

#include "anyccl/status.hpp"

namespace anyccl {

/// A Status whose message is formatted: error(Code::timeout, "rank {} waited {} s", r, s).
template <typename... Args>
Status error(Code code, fmt::format_string<Args...> text, Args&&... args) {
  return Status(code, fmt::format(text, std::forward<Args>(args)...));
}

/// The system's own reason for `number` (an errno); of EMFILE also the limit that was met.
std::string system_reason(int number);

/// error() of a failed system call: appends system_reason(number).
template <typename... Args>
Status system_error(int number, fmt::format_string<Args...> text, Args&&... args) {
  return Status(Code::system_error,
                fmt::format(text, std::forward<Args>(args)...) + ": " + system_reason(number));
}

#define ANYCCL_CONCAT_(a, b) a##b
#define ANYCCL_CONCAT(a, b) ANYCCL_CONCAT_(a, b)

/// ANYCCL_TRY(UniqueFd file, open(...)): declares `file`, or returns the error from this function.
#define ANYCCL_TRY(declaration, ...)                                                            \
  auto ANYCCL_CONCAT(result_, __LINE__) = (__VA_ARGS__);                                        \
  if (!ANYCCL_CONCAT(result_, __LINE__).ok()) return ANYCCL_CONCAT(result_, __LINE__).status(); \
  declaration = *std::move(ANYCCL_CONCAT(result_, __LINE__))

/// ANYCCL_CHECK(status): returns the error from this function, if it is one.
#define ANYCCL_CHECK(...)                                                        \
  do {                                                                           \
    if (::anyccl::Status status_ = (__VA_ARGS__); !status_.ok()) return status_; \
  } while (false)

}  // namespace anyccl
