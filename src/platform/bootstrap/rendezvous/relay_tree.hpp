#pragma once
// A relay tree decides which leaders of hosts tell others the root server's answer in a large
// group, so that the server need not tell all of them. Ranks that join ask it whether their group
// is large, and the root server asks it which leader tells the next one. It holds two numbers and
// no state.

#include <cstdint>
#include <optional>

namespace anyccl::bootstrap {

/// The way of the root server's answer to the leaders of hosts in a large group, numbered in the
/// order in which they come to it: it tells the first `direct` ones itself, and each leader tells
/// `each` later ones. A group of up to `direct` ranks is small: the server tells every rank. Every
/// rank and the server have the same numbers.
struct RelayTree {
  std::uint32_t direct = 64, each = 16;

  bool is_large(std::uint32_t group_size) const { return group_size > direct; }
  /// Whether the teller `number` (from 0, of those that can tell others) may be needed in a group
  /// of `size` ranks, each of which may be a leader.
  bool may_need(std::uint64_t number, std::uint32_t group_size) const {
    return direct + number * each < group_size;
  }
  /// The one that tells leader `number`; absent: the root server does.
  std::optional<std::uint32_t> teller_of(std::uint32_t number) const {
    if (number < direct) return std::nullopt;
    return (number - direct) / each;
  }
};

}  // namespace anyccl::bootstrap
