#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "platform/transport/setup.hpp"
#include "platform/transport/shm/cma.hpp"
#include "platform/transport/shm/control.hpp"
#include "platform/transport/shm/layout.hpp"
#include "platform/transport/shm/memory.hpp"

namespace anyccl::shm {

/// The memory that one rank shows the others (out) and lets them write (in).
struct Segment {
  SharedMemory out, in;
  bool shared = false;
  std::uint64_t nonce = 0;  ///< Random: who can name it has read our private memory.
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
  std::unique_ptr<fabric::Channel> channel;
  std::shared_ptr<Segment> same;  // keeps the memory of a thread of this process
  Mapping out_mapping, in_mapping;
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
  std::uint32_t notices = 0;                               // about windows, read so far
};

/// Memory to show to peers: shared, or private if all of them are threads of this process.
Result<std::shared_ptr<Segment>> make_segment(const Layout& layout, bool shared);

struct ConnectResult {
  std::vector<Peer> reached;
  std::vector<fabric::PeerChannel> others;  ///< Who could not be mapped here, or could not map us.
};
/// Shows `mine` to all peers and maps what they show; then nothing but the mappings is left.
/// Errors: timeout, remote_error.
Result<ConnectResult> connect_peers(Rank me, std::vector<fabric::PeerChannel> local,
                                    const std::shared_ptr<Segment>& mine, const Layout& layout,
                                    Deadline deadline);

}  // namespace anyccl::shm
