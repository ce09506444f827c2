#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "platform/transport/sockets/buffer_pool.hpp"
#include "platform/transport/sockets/frame.hpp"

namespace anyccl::sockets {

/// Names a data frame of a peer.
struct Key {
  std::uint64_t operation = 0;  ///< Or the message.
  std::uint32_t number = 0;
  bool is_message = false;  ///< A fragment of one, else a publication.
  bool operator==(const Key&) const = default;
};

inline Key key_of(const FrameHeader& h) {
  return {h.operation, h.number, (h.flags & kMessage) != 0};
}

/// A data frame that has arrived whole.
struct Arrival {
  FrameHeader header;
  Buffer buffer;  ///< Empty if the payload went to where it was wanted.
  const std::byte* data = nullptr;
};

/// Frames that have arrived from one peer and are not consumed yet, in any order.
class Arrivals {
 public:
  /// `total`: where the memory held is counted, together with other peers'.
  explicit Arrivals(std::size_t& total) : total_(total) {}
  Arrival* find(const Key& key);
  /// False, and nothing happens, if there is one with this key already.
  bool add(Arrival arrival);
  /// Takes it out: the caller frees its buffer. Empty if there is none.
  Arrival remove(const Key& key);
  /// Takes out publications of operations before `operation`.
  std::vector<Arrival> remove_before(std::uint64_t operation);
  bool empty() const { return map_.empty(); }
  /// Memory held.
  std::size_t bytes() const { return bytes_; }

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
  std::size_t bytes_ = 0;
  std::size_t& total_;
};

}  // namespace anyccl::sockets
