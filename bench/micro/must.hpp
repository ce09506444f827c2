#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "anyccl/anyccl.hpp"

/// Ends the program with what went wrong, if anything did.
inline void must(const anyccl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  std::_Exit(1);
}
/// The value, if there is one.
template <typename T>
T must(anyccl::Result<T> result) {
  must(result.status());
  return *std::move(result);
}
inline void must(anycclResult_t result, anycclComm_t comm) {
  if (result != anycclSuccess) must(anyccl::detail::status_of(result, comm));
}
