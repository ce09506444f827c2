#pragma once
// The arena is the memory that anycclMemAlloc hands out and anycclMemRegister adds: local peers can
// map it, and read data where it lies. A process has one arena, because an allocation belongs to no
// communicator. The shm transport asks it whether a buffer can be lent to peers.

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "platform/transports/shm/memory.hpp"

namespace anyccl::shm {

/// Blocks lie in regions, each a sealed memfd: peers map a region once. Any thread.
///
/// A region whose blocks are all free goes back to the system, but for one small one that is kept.
/// In a forked child the regions of its parent become private copies: what either writes later, the
/// other does not see in pages that it has written itself, and peers see nothing of the child's.
class Arena {
 public:
  struct Window {
    std::uint64_t id;      ///< The region's; never reused in this process.
    std::size_t position;  ///< In the file, of what was looked for.
    std::size_t bytes;     ///< The file's, as far as peers map it.
    int fd;                ///< Valid while the memory is not freed.
  };
  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  static Arena& of_process();

  /// Aligned to 64 bytes; backed with memory, near the calling thread. Its contents are undefined.
  Result<void*> allocate(std::size_t bytes);
  Status free(void* memory);
  /// Lets peers read memory[0, bytes), the program's own mapping of a file from `offset` on. The
  /// file must be sealed so that it cannot shrink and nobody can map it for writing any more.
  Status add(void* memory, std::size_t bytes, int fd, std::size_t offset);
  /// Memory that add() got; the program keeps its mapping.
  Status remove(void* memory);
  /// The window that holds all of [at, at + bytes), if any.
  std::optional<Window> find(const void* at, std::size_t bytes) const;

  /// Keeps a region mapped, for a reader in this process; null if it is gone.
  std::shared_ptr<const SharedMemory> hold(std::uint64_t id) const;
  /// How many regions went back so far.
  std::uint64_t returned() const { return returned_.load(std::memory_order_relaxed); }
  /// Bytes of the regions that allocate() has made, without those from before a fork.
  std::size_t bytes() const;

 private:
  struct Region {
    std::uint64_t id = 0;
    std::shared_ptr<SharedMemory> memory;  ///< Mapped from the beginning of the file.
    std::byte* first = nullptr;            ///< Where the program has it, from `offset` on.
    std::size_t offset = 0;
    std::size_t used = 0;  ///< Bytes.
    std::vector<bool> populated;
    bool inherited = false;  ///< From before a fork.
    bool added = false;      ///< The program's own mapping.
    std::byte* begin() const { return first; }
    std::byte* end() const { return first + (memory->mapping.size() - offset); }
  };
  using Regions = std::map<const std::byte*, Region>;  // by address
  using Dropped = std::shared_ptr<SharedMemory>;

  Region& region_of(const std::byte* at) { return std::prev(regions_.upper_bound(at))->second; }
  std::byte* take(std::size_t bytes);
  Status grow(std::size_t bytes);
  Status populate_block(std::byte* at, std::size_t bytes);
  /// Frees the block. Returns the memory of its region if that goes too, so that the caller unmaps
  /// it without the lock; else null.
  Dropped give_back(std::byte* at, std::size_t bytes);
  /// Forgets the region and returns its memory, which is unmapped when nobody holds it any more.
  Dropped drop(Region& region);
  void add_hole(std::byte* at, std::size_t bytes);
  void remove_hole(std::map<std::byte*, std::size_t>::iterator hole);
  void become_private();
  static void before_fork();
  static void after_fork_in_parent();
  static void after_fork_in_child();

  mutable std::mutex mutex_;
  Regions regions_;
  std::unordered_map<const void*, std::size_t> blocks_;  // in use: their bytes
  std::map<std::byte*, std::size_t> holes_;              // by address, never side by side
  std::set<std::pair<std::size_t, std::byte*>> holes_by_size_;
  std::size_t bytes_ = 0, empty_ = 0;  // of regions; how many regions are empty
  std::uint64_t next_id_ = 1;
  std::atomic<std::size_t> count_{0};  // of regions: find() is one load where nobody allocates
  std::atomic<std::uint64_t> returned_{0};
};

}  // namespace anyccl::shm
