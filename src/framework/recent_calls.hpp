#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/hash.hpp"
#include "framework/call.hpp"
#include "framework/execution.hpp"

namespace anyccl {

/// What was prepared for recent calls. Calls that take turns keep their places: kWays of them share
/// each, and who was not used for longest leaves it. Nothing is allocated when one is found.
class RecentCalls {
 public:
  /// Null if there is none; else valid until the next call of this object.
  const std::shared_ptr<const Prepared>* find(const CallKey& key) {
    Place& place = place_of(key);
    const auto found = std::find_if(place.begin(), place.end(),
                                    [&](const Entry& entry) { return entry.key == key; });
    if (found == place.end()) return nullptr;
    std::rotate(place.begin(), found, found + 1);
    return &place.front().prepared;
  }
  void add(const CallKey& key, std::shared_ptr<const Prepared> prepared) {
    Place& place = place_of(key);
    std::rotate(place.begin(), place.end() - 1, place.end());
    place.front() = {key, std::move(prepared)};
  }
  /// Those for which unwanted(prepared).
  template <typename Unwanted>
  void drop_if(Unwanted unwanted) {
    for (Place& place : places_)
      for (Entry& entry : place)
        if (entry.prepared != nullptr && unwanted(*entry.prepared)) entry = {};
  }

 private:
  static constexpr std::size_t kPlaces = 64, kWays = 4;
  struct Entry {
    CallKey key;
    std::shared_ptr<const Prepared> prepared;
  };
  using Place = std::array<Entry, kWays>;

  Place& place_of(const CallKey& key) { return places_[mix(key.what, key.count) % kPlaces]; }

  std::vector<Place> places_ = std::vector<Place>(kPlaces);
};

}  // namespace anyccl
