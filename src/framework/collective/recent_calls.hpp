#pragma once
// PlanCache keeps the calls that it has prepared here, and finds them by their keys.

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
/// the one that was not used for longest leaves it. There are as many sets as are needed, up to
/// kMostSets. Nothing is allocated when one is found.
class RecentCalls {
 public:
  /// Null if there is none; else valid until the next call of this object.
  const std::shared_ptr<const PreparedCall>* find(const CallKey& key) {
    if (sets_.empty()) return nullptr;
    Set& set = set_of(key);
    const auto found =
        std::find_if(set.begin(), set.end(), [&](const Entry& entry) { return entry.key == key; });
    if (found == set.end()) return nullptr;
    std::rotate(set.begin(), found, found + 1);
    return &set.front().prepared;
  }
  /// In place of the one that has the same key, if there is one.
  void add(const CallKey& key, std::shared_ptr<const PreparedCall> prepared) {
    if (find(key) != nullptr) {
      set_of(key).front().prepared = std::move(prepared);
      return;
    }
    if (sets_.empty()) sets_.resize(1);
    while (set_of(key).back().prepared != nullptr && sets_.size() < kMostSets) double_sets();
    put({key, std::move(prepared)});
  }
  /// Those for which unwanted(prepared).
  template <typename Unwanted>
  void drop_if(Unwanted unwanted) {
    for (Set& set : sets_)
      for (Entry& entry : set)
        if (entry.prepared != nullptr && unwanted(*entry.prepared)) entry = {};
  }

 private:
  static constexpr std::size_t kMostSets = 64, kWays = 4;
  struct Entry {
    CallKey key;
    std::shared_ptr<const PreparedCall> prepared;
  };
  using Set = std::array<Entry, kWays>;

  Set& set_of(const CallKey& key) { return sets_[mix(key.what, key.count) & (sets_.size() - 1)]; }
  void put(Entry entry) {
    Set& set = set_of(entry.key);
    std::rotate(set.begin(), set.end() - 1, set.end());
    set.front() = std::move(entry);
  }
  /// Each set becomes two, in which its calls keep their order.
  void double_sets() {
    std::vector<Set> old(2 * sets_.size());
    old.swap(sets_);
    for (Set& set : old)
      for (auto entry = set.rbegin(); entry != set.rend(); ++entry)
        if (entry->prepared != nullptr) put(std::move(*entry));
  }

  std::vector<Set> sets_;  // a power of two
};

}  // namespace anyccl
