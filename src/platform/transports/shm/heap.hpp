#pragma once
// The heap gives a rank its block of shared memory in each communicator (layout.hpp says what lies
// in it). Peers map a volume once, which has room for many blocks, so a further communicator costs
// them no mapping and nobody a descriptor. make_segment() takes blocks, and segments return them.

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/private_fd.hpp"
#include "platform/link/peer_process.hpp"
#include "platform/transports/shm/memory.hpp"

namespace anyccl::shm {

/// A file of memory that peers read, and one of doorbells that they ring. `number`: how peers that
/// have mapped it are told of it; 0: it holds one block, and is shown for that one alone.
struct Volume {
  static constexpr std::size_t kBytes = std::size_t{256} << 20;  ///< If it has a number; sparse.
  static constexpr std::size_t kBellBytes = 128;
  static constexpr std::uint32_t kBells = 512;  ///< If it has a number.

  std::uint32_t number = 0;
  SharedMemory out, bells;  ///< Without descriptors.
  PrivateFd out_fd, bells_fd;
};

/// Such files of another process, as they are mapped here.
struct PeerVolume {
  Mapping out, bells;
};

/// A peer that has mapped a block.
struct BlockReader {
  std::shared_ptr<const PeerVolume> volume;           ///< In which `reads` lies.
  const std::atomic<std::uint64_t>* reads = nullptr;  ///< RankFlags::reads of the peer.
  std::shared_ptr<const link::PeerProcess> process;   ///< Null if unknown.

  /// Whether it reads nothing more of what it read under `key`.
  bool is_done(std::uint64_t key) const;
  /// Whether it has ended, by a system call; false if its process is unknown.
  bool is_dead() const;
};

class SharedHeap;

/// The part of a volume that one communicator has.
struct Block {
  std::shared_ptr<Volume> volume;
  std::size_t position = 0, bytes = 0;
  std::uint32_t bell = 0;
  std::shared_ptr<SharedHeap> heap;  ///< That it comes from; null: it has the volume to itself.

  std::byte* out() const { return volume->out.mapping.data() + position; }
  std::byte* in() const { return volume->bells.mapping.data() + bell * Volume::kBellBytes; }
};

/// Memory of a volume of its own. Errors: system_error.
Result<Block> make_single_block(std::size_t bytes);
/// Memory that only this process has, for ranks that are threads of it. Errors: system_error.
Result<Block> make_private_block(std::size_t bytes);

/// The memory that a rank shows in all communicators over the same links.
///
/// A block is used again when nobody can read what was in it: with a peer that is still in a call
/// of a communicator that was aborted here, that may be later. Until then it is left as it is.
/// Threads: any.
class SharedHeap : public std::enable_shared_from_this<SharedHeap> {
 public:
  /// The longest block; longer ones get a volume each.
  static constexpr std::size_t kMost = Volume::kBytes / 8;
  /// Whether this process may have volumes: no limit forbids their size, and they can be given
  /// back.
  static bool is_affordable();

  /// Zeroed memory. Errors: system_error.
  Result<Block> allocate(std::size_t bytes);
  /// Nobody writes the block any more; `readers` may read it as long as they read under `key`.
  void release(Block block, std::uint64_t key, std::vector<BlockReader> readers);

 private:
  struct Space;  // What of a volume is free.
  /// A block that may still be read.
  struct Released {
    Block block;
    std::uint64_t key;
    std::vector<BlockReader> readers;
  };

  bool take(std::size_t bytes, Block& block) const;
  void collect(bool look_for_the_dead);
  void recycle(const Block& block);

  std::mutex mutex_;
  std::vector<std::shared_ptr<Space>> spaces_;
  std::vector<Released> released_;
};

}  // namespace anyccl::shm
