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

#include "platform/transports/setup.hpp"

namespace anyccl::shm {

/// Shares memory with local peers: each pair exchanges its segments over its link and checks that
/// both could map them. Called `shm`, or `loopback` if all peers are threads of this process (then
/// the memory is private to the process and mapped once). The staging ring takes memory from the
/// first large call on.
/// Errors: system_error (no memory), timeout, remote_error (a peer went away).
Result<MadeTransport> make_shm_transport(std::vector<link::PeerChannel> peers,
                                         const TransportSetup& setup);

}  // namespace anyccl::shm
