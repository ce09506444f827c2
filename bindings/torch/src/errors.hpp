#pragma once
// Failures become exceptions of torch.

#include <exception>
#include <string>
#include <string_view>

#include "anyccl/anyccl.h"

namespace anyccl::torch {

/// The exception for `code`, for later: torch.distributed.DistNetworkError where the network is the
/// cause, RuntimeError where an argument is, else DistBackendError. `name` is torch's name of the
/// operation, `text` the library's reason.
std::exception_ptr failure(anycclResult_t code, std::string_view name, std::string text);
/// Of a call of this thread that has just failed.
std::exception_ptr failure(anycclResult_t code, std::string_view name);
[[noreturn]] void throw_backend_error(const std::string& text);

inline void check(anycclResult_t code, std::string_view name) {
  if (code != anycclSuccess) [[unlikely]]
    std::rethrow_exception(failure(code, name));
}

}  // namespace anyccl::torch
