#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

namespace anyccl::bootstrap {

/// The way of the root server's answer to all ranks: it tells the first `direct` ones itself, and
/// each rank tells `each` others. Every rank and the server have the same numbers.
struct RelayTree {
  std::uint32_t direct = 64, each = 16;
  /// So many wait at the server for the rank that tells them to come; others come again.
  std::uint32_t held = 256;

  /// The rank that tells `rank`; absent: the root server does.
  std::optional<std::uint32_t> sender_of(std::uint32_t rank) const {
    if (rank < direct) return std::nullopt;
    return (rank - direct) / each;
  }

  /// Ranks from `first` up to `end`, which is not one of them.
  struct Ranks {
    std::uint32_t first = 0, end = 0;
    bool contains(std::uint32_t rank) const { return first <= rank && rank < end; }
    bool empty() const { return first == end; }
  };
  /// Those that `rank` tells in a group of `size`.
  Ranks receivers_of(std::uint32_t rank, std::uint32_t size) const {
    const auto within = [&](std::uint64_t r) {
      return static_cast<std::uint32_t>(std::min<std::uint64_t>(r, size));
    };
    const std::uint64_t first = direct + std::uint64_t{rank} * each;
    return {within(first), within(first + each)};
  }
};

}  // namespace anyccl::bootstrap
