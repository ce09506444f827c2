#pragma once
// Failures become exceptions of torch.

#include <exception>
#include <string>
#include <string_view>

#include "anyccl/anyccl.h"

namespace anyccl::torch {

/// The message for `code`, with which a call of this thread has just failed. `name` is torch's
/// name of the operation.
std::string words_of(anycclResult_t code, std::string_view name);
/// torch.distributed.DistBackendError, for later.
std::exception_ptr backend_error(const std::string& text);
[[noreturn]] void throw_backend_error(const std::string& text);

inline void check(anycclResult_t code, std::string_view name) {
  if (code != anycclSuccess) [[unlikely]]
    throw_backend_error(words_of(code, name));
}

}  // namespace anyccl::torch
