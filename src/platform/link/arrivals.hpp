#pragma once
// Arrivals keep the data frames of a peer that have come whole and are not consumed yet. Each
// context of a link has its own. The reader adds a frame, and the channel takes it out when the
// rank has consumed it.

#include <unordered_map>
#include <vector>

#include "platform/link/buffer_pool.hpp"
#include "platform/link/frame.hpp"

namespace anyccl::link {

/// A data frame that has arrived whole.
struct Arrival {
  FrameHeader header;
  Buffer buffer;  ///< Empty if the payload went to where it was wanted.
  const std::byte* data = nullptr;
};

/// Frames that have arrived in one context from one peer and are not consumed yet, in any order.
class Arrivals {
 public:
  Arrival* find(const Key& key);
  /// False, and nothing happens, if there is one with this key already.
  bool add(Arrival arrival);
  /// Takes it out. Empty if there is none.
  Arrival remove(const Key& key);
  /// Takes out publications of operations before `operation`.
  std::vector<Arrival> remove_before(std::uint64_t operation);
  void clear() { map_.clear(); }
  bool empty() const { return map_.empty(); }
  std::size_t size() const { return map_.size(); }
  /// Memory held.
  std::size_t bytes() const;

 private:
  struct Hash {
    std::size_t operator()(const Key& k) const {
      const std::uint64_t low = (std::uint64_t{k.number} << 1) | std::uint64_t{k.is_message};
      return static_cast<std::size_t>((k.operation * 0x9E3779B97F4A7C15U) ^
                                      (low * 0xC2B2AE3D27D4EB4FU));
    }
  };
  using Map = std::unordered_map<Key, Arrival, Hash>;
  Arrival take(Map::const_iterator at);

  Map map_;
  std::vector<Map::node_type> spare_;  // Nodes for reuse, so that an arrival need not allocate.
};

}  // namespace anyccl::link
