#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

#include "anyccl/anyccl.hpp"

/// Ends the program with what went wrong, if anything did.
inline void must(const anyccl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  std::_Exit(1);
}
inline void must(anycclResult_t result, anycclComm_t comm) {
  if (result != anycclSuccess) must(anyccl::detail::status_of(result, comm));
}
