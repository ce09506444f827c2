#pragma once
// Ranks of one host show each other their memory when an shm transport is made: connect_peers()
// sends each local peer the segment of this rank over their link, maps the segments of the peers,
// and finds out which peers have mapped its own. The rest of the transport uses the Peer structures
// from it.

#include <memory>
#include <unordered_map>
#include <vector>

#include "base/fork.hpp"
#include "platform/transports/setup.hpp"
#include "platform/transports/shm/control.hpp"
#include "platform/transports/shm/layout.hpp"
#include "platform/transports/shm/pair_memory.hpp"
#include "platform/transports/shm/shown.hpp"

namespace anyccl::shm {

/// The memory that one rank shows the others (out) and lets them write (in).
struct Segment {
  Segment() = default;
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;
  /// Its block may be used again once none of the peers of leave_to() reads it; without leave_to()
  /// it never is, and its pages go back to the system.
  ~Segment();

  std::byte* out() const { return block.out(); }
  std::byte* in() const { return block.in(); }
  /// As for memory, from `offset` in the block on.
  Status populate(std::size_t offset, std::size_t bytes);
  bool give_back(std::size_t offset, std::size_t bytes);
  /// Whether this process is a forked child, where nothing of it is mapped.
  bool is_inherited() const { return generation_ != fork_generation(); }
  /// Shows that this rank reads nothing of its peers any more. `peers`: those that may still read
  /// its block.
  void leave_to(std::vector<BlockReader> peers);

  Block block;
  bool shared = false;
  bool returnable = false;  ///< give_back() works.
  std::uint64_t nonce = 0;  ///< Random: who can name it has read our private memory.
  std::uint64_t reads = 0;  ///< RankFlags::reads of all ranks of the communicator.

 private:
  const std::uint64_t generation_ = fork_generation();
  bool left_ = false;
  std::vector<BlockReader> readers_;
};

/// Memory of a peer that anycclMemAlloc gave it.
struct Window {
  const std::byte* base = nullptr;
  std::size_t bytes = 0;
  Mapping mapping;                           // of another process
  std::shared_ptr<const SharedMemory> same;  // of a thread of this process
};

struct Peer {
  Rank rank{};
  bool same_process = false;
  std::unique_ptr<link::Channel> channel;
  std::shared_ptr<Segment> same;  // keeps the memory of a thread of this process
  std::shared_ptr<const PeerVolume> volume;
  const std::byte* out = nullptr;
  std::byte* in = nullptr;
  CmaReader memory;       // its private one, if it can be read here
  bool reads_us = false;  // it can read ours
  PeerState state = PeerState::present;
  std::uint64_t fragments_sent = 0, fragments_read = 0;  // of messages to it, and from it
  std::uint64_t fragments_taken = 0;                     // of those sent, as far as known
  std::uint64_t fragments_lent = 0;                      // the last one of those sent that was lent
  bool lines_populated = false, fragments_populated = false;  // of ours, for messages to it
  std::unordered_map<std::uint64_t, Window> windows = {};  // by the number that the peer gave them
  std::vector<Window> closed_windows = {};                 // by the peer, and perhaps read here yet
  std::uint32_t notices = 0;                               // about windows, read so far
  std::shared_ptr<const Shown> shown;                      // on request; null: nothing yet
};

/// Memory to show to peers: shared, or private if all of them are threads of this process. `key`:
/// of the communicator. It is a part of `heap`, if there is one and it is not too long for that.
Result<std::shared_ptr<Segment>> make_segment(const Layout& layout, bool shared, std::uint64_t key,
                                              const std::shared_ptr<SharedHeap>& heap);
/// The heap from which these peers are shown memory, made now if they have none and it is
/// affordable. Null: there is none, or they have not the same one.
std::shared_ptr<SharedHeap> heap_of(std::span<const link::PeerChannel> peers);

struct ConnectResult {
  std::vector<Peer> reached;
  std::vector<link::PeerChannel> others;  ///< Who could not be mapped here, or could not map us.
};
/// Shows `mine` to all peers and maps what they show; then nothing but the mappings is left.
/// Errors: timeout, remote_error.
Result<ConnectResult> connect_peers(Rank me, std::vector<link::PeerChannel> local,
                                    const std::shared_ptr<Segment>& mine, const Layout& layout,
                                    Deadline deadline);

}  // namespace anyccl::shm
