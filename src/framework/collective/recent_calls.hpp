#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/hash.hpp"
#include "framework/call/call.hpp"
#include "framework/collective/execution.hpp"

namespace anyccl {

/// The prepared forms of recent calls. Set associative: kWays calls share a set, and
/// the one that was not used for longest leaves it. Nothing is allocated when one is found.
class RecentCalls {
 public:
  /// Null if there is none; else valid until the next call of this object.
  const std::shared_ptr<const PreparedCall>* find(const CallKey& key) {
    Set& set = set_of(key);
    const auto found =
        std::find_if(set.begin(), set.end(), [&](const Entry& entry) { return entry.key == key; });
    if (found == set.end()) return nullptr;
    std::rotate(set.begin(), found, found + 1);
    return &set.front().prepared;
  }
  void add(const CallKey& key, std::shared_ptr<const PreparedCall> prepared) {
    Set& set = set_of(key);
    std::rotate(set.begin(), set.end() - 1, set.end());
    set.front() = {key, std::move(prepared)};
  }
  /// Those for which unwanted(prepared).
  template <typename Unwanted>
  void drop_if(Unwanted unwanted) {
    for (Set& set : sets_)
      for (Entry& entry : set)
        if (entry.prepared != nullptr && unwanted(*entry.prepared)) entry = {};
  }

 private:
  static constexpr std::size_t kSets = 64, kWays = 4;
  struct Entry {
    CallKey key;
    std::shared_ptr<const PreparedCall> prepared;
  };
  using Set = std::array<Entry, kWays>;

  Set& set_of(const CallKey& key) { return sets_[mix(key.what, key.count) % kSets]; }

  std::vector<Set> sets_ = std::vector<Set>(kSets);
};

}  // namespace anyccl
