// The operations that are compared: the input and expected output of each rank. Sizes are those of
// `anyccl perf`: bytes of the larger buffer of one rank, at least one float for every rank.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace peers {

constexpr int kRoot = 0;

/// Small whole numbers, so that their sums are exact in any order.
inline float input_at(int rank, std::size_t i) {
  return static_cast<float>(rank + 1) + static_cast<float>(i % 13);
}

/// One operation and size as one rank sees it. `count` is the argument in all libraries: elements
/// of the whole vector, or of one block where there is a block for every rank.
struct Case {
  std::string op;
  int rank, ranks;
  std::size_t count;

  bool is(const char* name) const { return op == name; }
  std::size_t all() const { return count * static_cast<std::size_t>(ranks); }
  bool in_blocks() const { return is("all_gather") || is("reduce_scatter") || is("all_to_all"); }
  bool has_root() const { return is("broadcast") || is("reduce"); }
  int next() const { return (rank + 1) % ranks; }
  int before() const { return (rank + ranks - 1) % ranks; }

  std::size_t bytes() const { return (in_blocks() ? all() : count) * sizeof(float); }
  std::size_t input_count() const { return in_blocks() && !is("all_gather") ? all() : count; }
  std::size_t output_count() const {
    if (is("barrier") || (is("reduce") && rank != kRoot)) return 0;
    return in_blocks() && !is("reduce_scatter") ? all() : count;
  }
  float sum_at(std::size_t i) const {
    float sum = 0;
    for (int r = 0; r < ranks; ++r) sum += input_at(r, i);
    return sum;
  }
  /// The expected element i of the output.
  float output_at(std::size_t i) const {
    const std::size_t mine = static_cast<std::size_t>(rank) * count;
    if (is("all_reduce") || is("reduce")) return sum_at(i);
    if (is("reduce_scatter")) return sum_at(mine + i);
    if (is("broadcast")) return input_at(kRoot, i);
    if (is("send_recv")) return input_at(before(), i);
    const int from = static_cast<int>(i / count);
    return input_at(from, i % count + (is("all_to_all") ? mine : 0));
  }
};

inline Case make_case(const std::string& op, int rank, int ranks, std::size_t bytes) {
  Case c{op, rank, ranks, 0};
  if (c.is("barrier")) return c;
  const std::size_t elements = std::max<std::size_t>(1, bytes / sizeof(float));
  const std::size_t parts = c.in_blocks() ? static_cast<std::size_t>(ranks) : 1;
  c.count = std::max<std::size_t>(1, elements / parts);
  return c;
}

}  // namespace peers
