#pragma once
// Shared memory inside one host; layout.hpp says what lies where.
//
// 1. Each rank writes its own memory only, and maps that of its peers read-only. The one exception
//    is the doorbell page.
// 2. A publication goes to the slot that its operation and number give. Small ones lie in the slot
//    before its word (LL, LL128); larger ones in the staging ring, in a window, or in the
//    publisher's own memory, and the slot describes where.
// 3. SlotTracker says when a slot or an extent of the ring may be used again: when the progress
//    lines of all readers have passed it.
// 4. A word covers operation, round and digest, so a reader never takes bytes of another call.
// 5. Publishing is plain stores and one release store. Only before it sleeps does a rank fence its
//    peers (membarrier) and look once more.

#include <memory>
#include <vector>

#include "base/deadline.hpp"
#include "base/unique_fd.hpp"
#include "platform/transport.hpp"

namespace anyccl::shm {

/// A peer on this host: an authenticated unix socket to it.
struct LocalPeer {
  Rank rank;
  UniqueFd socket;
  bool same_process = false;
};

/// Where publications that do not fit their slot may lie.
enum class CopyFrom : std::uint8_t {
  automatic,  ///< In memory of anycclMemAlloc, else wherever it is fastest.
  staged,     ///< In the staging ring: two copies.
  cma,        ///< In private memory, which readers read with process_vm_readv; else staged.
  window,     ///< In memory of anycclMemAlloc; else staged.
};

struct ShmOptions {
  std::uint32_t ranks = 0;  ///< Of the communicator.
  std::uint32_t banks = 0, slots = 0;
  /// Of each rank's staging ring, which takes memory from the first large call on.
  std::size_t ring_bytes = std::size_t{1} << 20;
  /// Publications of at most so many bytes lie in their slot, before its sequence word (LL and
  /// LL128); equal on all ranks.
  std::size_t line_bytes = kLineBytes;
  CopyFrom copy = CopyFrom::automatic;  ///< Equal on all ranks.
  bool cores_are_shared = false;        ///< Ranks of the communicator take turns on cores.
};

struct ShmGroup {
  std::unique_ptr<Transport> transport;  ///< Null if no peer could be reached this way.
  std::vector<LocalPeer> others;  ///< Peers whose memory could not be shared, with their sockets.
};

/// Shares memory with local peers: each pair exchanges its segments over its socket and checks that
/// both could map them. Called `shm`, or `loopback` if all peers are threads of this process (then
/// the memory is private to the process and mapped once). Errors: system_error (no memory),
/// timeout, remote_error (a peer went away).
Result<ShmGroup> make_shm_transport(Rank me, std::vector<LocalPeer> peers,
                                    const ShmOptions& options, Deadline deadline);

}  // namespace anyccl::shm
