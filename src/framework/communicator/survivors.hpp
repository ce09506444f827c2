#pragma once
// The runtime asks here what a communicator knows of its ranks and their calls: where ranks that
// are left after a failure carry on, and where new communicators are made of old ones.

#include <cstdint>
#include <span>
#include <string>

#include "framework/communicator/communicator.hpp"

namespace anyccl {

/// What a communicator knows, also after its failure, of its own calls and of its peers.
///
/// Threads: any. The communicator is borrowed.
class Survivors {
 public:
  explicit Survivors(Comm& comm) : comm_(comm) {}

  /// How many collectives of the program have completed here, in the order of their calls; what is
  /// verified, with its check.
  std::uint64_t completed();
  /// Says what completed() says, for the holder of the progress lock.
  std::uint64_t completed_here() const;
  /// Ranks that are left after a failure have agreed that so many have completed on all of them.
  void note_agreed(std::uint64_t completed) {
    comm_.agreed_.store(completed, std::memory_order_relaxed);
  }
  /// The number that was noted last; 0: there is none.
  std::uint64_t agreed() const { return comm_.agreed_.load(std::memory_order_relaxed); }
  /// For a caller that waits for these peers elsewhere: ok, or why one will not come, as far as is
  /// known here. A problem that peers report fails the communicator.
  Status absence(std::span<const Rank> wanted);
  /// After a failure: whether `peer` has taken leave, and so will not carry on; false while another
  /// thread is at work here.
  bool has_left(Rank peer);
  /// "operation 3, barrier, of communicator tp", if `peer` has made that call, and this rank has
  /// not; empty: as far as is known it has not, or another thread is at work here.
  std::string call_without_me(Rank peer);

 private:
  Comm& comm_;
};

}  // namespace anyccl
