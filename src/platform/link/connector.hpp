#pragma once
// A link asks its connector for a connection when the link is first used, and when its connection
// is lost. This interface keeps links free of the code that connects: the thread that connects
// ranks on demand does the work, and attaches the socket to the link.

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "anyccl/types.hpp"
#include "platform/link/context.hpp"

namespace anyccl::link {

/// Connects the links of a rank to the other members of a group when they are first used, from
/// either side, and once more if their connections are lost; see Link.
///
/// Threads: any.
class Connector {
 public:
  virtual ~Connector() = default;
  /// The link to this member is used here: in a while it is attached, or given up. Never waits.
  virtual void connect(Rank member) = 0;
  /// The connection of the link is lost, by this errno; 0: the peer has ended it. In a while
  /// another one is attached, or the link given up. Never waits; with the link's lock.
  virtual void reconnect(Rank member, int problem) = 0;

  /// How many links were attached so far. A communicator that waits opens channels on them, as they
  /// may bring the reason why nothing comes over its own.
  std::uint64_t attached() const { return attached_.load(std::memory_order_seq_cst); }
  /// The context is told of each.
  void watch(std::weak_ptr<Context> context);

 protected:
  void note_attached();

 private:
  std::mutex mutex_;
  std::vector<std::weak_ptr<Context>> watching_;
  std::atomic<std::uint64_t> attached_{0};
};

}  // namespace anyccl::link
