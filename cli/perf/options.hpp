#pragma once

#include <optional>
#include <string>
#include <vector>

#include "perf/operations.hpp"
#include "perf/sizes.hpp"
#include "perf/types.hpp"

namespace anyccl::cli {

/// How each case is measured.
struct Protocol {
  int warmups = 5;
  std::optional<int> iterations = {};  ///< Absent: as many as fit a time budget.
  bool touch = true;  ///< Between calls, write to each cache line of the input, read the result.
  bool check = true;  ///< Then write and compare every element; else of one call only.
  bool loop = true;   ///< Also time calls back to back.
};

/// The request to `anyccl perf`, the same on all ranks.
struct PerfOptions {
  const Operation* operation = nullptr;
  std::vector<std::size_t> sizes = {};
  std::vector<TypeName> types = {};
  std::vector<RedopName> redops = {};
  int root = 0;
  Protocol protocol = {};
  bool out_of_place = true, in_place = true;
  bool arena = false;      ///< Buffers from anycclMemAlloc, which peers can read directly.
  std::size_t offset = 0;  ///< Bytes from the beginning of a page to that of each buffer.
  std::string json = {};   ///< File to write; empty: none.
};

}  // namespace anyccl::cli
