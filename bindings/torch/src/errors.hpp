#pragma once
// Failures become exceptions of torch.

#include <chrono>
#include <exception>
#include <string>
#include <string_view>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include "anyccl/anyccl.h"

namespace anyccl::torch {

/// The exception for `code`, for later: torch.distributed.DistNetworkError where the network is the
/// cause, RuntimeError where an argument is, else DistBackendError. `name` is torch's name of the
/// operation, `text` the library's reason.
std::exception_ptr failure(anycclResult_t code, std::string_view name, std::string text);
/// The exception for a call of this thread that has just failed.
std::exception_ptr failure(anycclResult_t code, std::string_view name);
[[noreturn]] void throw_backend_error(const std::string& text);
/// ": rank 0 waits for rank 1 in ...", after a wait of this thread that was too short.
std::string awaited_text();
/// A wait for an operation was over before it: `awaited` says for whom that waits, or is empty.
[[noreturn]] void throw_timed_out(std::chrono::milliseconds time, c10d::OpType operation,
                                  const std::string& awaited);

inline void check(anycclResult_t code, std::string_view name) {
  if (code != anycclSuccess) [[unlikely]]
    std::rethrow_exception(failure(code, name));
}

}  // namespace anyccl::torch
