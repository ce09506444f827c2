#include "platform/transports/shm/arena.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>

#include "base/error.hpp"
#include "base/round_up.hpp"
#include "platform/transports/shm/mapped_file.hpp"

namespace anyccl::shm {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kMostBytes = std::size_t{1} << 46;  ///< Per block; rounding up is safe then.
constexpr std::size_t kSmallestRegion = std::size_t{1} << 20;
/// Small blocks share regions of at most this size, and an empty region of at most this size is
/// kept: a larger block has its own, and comes and goes as with malloc().
constexpr std::size_t kLargestShared = std::size_t{32} << 20;
constexpr std::size_t kPopulated = std::size_t{64} << 10;  ///< Bytes that are populated together.
constexpr std::size_t kHugePage = std::size_t{2} << 20;

}  // namespace

Arena& Arena::of_process() {
  static Arena* const arena = [] {  // never destroyed: memory may be freed during exit
    auto* const made = new Arena;
    ::pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    return made;
  }();
  return *arena;
}

Result<void*> Arena::allocate(std::size_t bytes) {
  if (bytes > kMostBytes)
    return error(Code::invalid_argument, "anycclMemAlloc of {} bytes: {} are the most", bytes,
                 kMostBytes);
  const std::size_t whole = round_up(std::max<std::size_t>(bytes, 1), kAlignment);
  std::unique_lock lock(mutex_);
  std::byte* at = take(whole);
  if (at == nullptr) {
    ANYCCL_CHECK(grow(whole));
    at = take(whole);
  }
  lock.unlock();
  if (Status status = populate_block(at, whole); !status.ok()) {
    static_cast<void>(free(at));
    return status;
  }
  return static_cast<void*>(at);
}

/// The smallest hole that fits; null if there is none.
std::byte* Arena::take(std::size_t bytes) {
  const auto found = holes_by_size_.lower_bound({bytes, nullptr});
  if (found == holes_by_size_.end()) return nullptr;
  const auto [room, at] = *found;
  remove_hole(holes_.find(at));
  if (room > bytes) add_hole(at + bytes, room - bytes);
  Region& region = region_of(at);
  if (region.used == 0) --empty_;
  region.used += bytes;
  blocks_.emplace(at, bytes);
  return at;
}

/// Regions grow with what is there already, so that they stay few.
Status Arena::grow(std::size_t bytes) {
  const std::size_t shared = std::clamp(std::bit_ceil(bytes_), kSmallestRegion, kLargestShared);
  const std::size_t whole =
      bytes > kLargestShared / 2 ? round_up(bytes, 4096) : std::max(shared, std::bit_ceil(bytes));
  ANYCCL_TRY(SharedMemory memory, create_shared(whole, false, "anycclMemAlloc"));
  std::byte* const at = memory.mapping.data();
  ::madvise(at, whole, MADV_DOFORK);  // a child may read what its parent allocated
  if (whole >= kHugePage) ::madvise(at, whole, MADV_HUGEPAGE);  // where shared memory may have them
  Region region;
  region.id = next_id_++;
  region.memory = std::make_shared<SharedMemory>(std::move(memory));
  region.first = at;
  region.populated.resize((whole + kPopulated - 1) / kPopulated);
  regions_.emplace(at, std::move(region));
  add_hole(at, whole);
  bytes_ += whole;
  ++empty_;
  count_.store(regions_.size(), std::memory_order_relaxed);
  return {};
}

/// Backs a block with memory. The thread that allocates does it, as that decides on what node the
/// memory is; without the lock, because it takes long. Two threads may populate one range: that
/// does no harm.
Status Arena::populate_block(std::byte* at, std::size_t bytes) {
  std::unique_lock lock(mutex_);
  Region& region = region_of(at);  // stays: it holds this block
  const std::shared_ptr<SharedMemory> memory = region.memory;
  const auto offset = static_cast<std::size_t>(at - region.begin());
  const std::size_t first = offset / kPopulated, last = (offset + bytes - 1) / kPopulated;
  std::size_t from = first, to = last + 1;
  while (from < to && region.populated[from]) ++from;
  while (from < to && region.populated[to - 1]) --to;
  if (from == to) return {};
  lock.unlock();
  const std::size_t end = std::min(to * kPopulated, memory->mapping.size());
  ANYCCL_CHECK(populate(*memory, from * kPopulated, end - from * kPopulated));
  lock.lock();
  for (std::size_t i = from; i < to; ++i) region.populated[i] = true;
  return {};
}

Status Arena::free(void* memory) {
  if (memory == nullptr) return {};
  Dropped dropped;  // unmapped after the lock is gone
  const std::lock_guard lock(mutex_);
  const auto block = blocks_.find(memory);
  if (block == blocks_.end())
    return error(Code::invalid_argument, "anycclMemFree of {}, which anycclMemAlloc did not return",
                 fmt::ptr(memory));
  const std::size_t bytes = block->second;
  blocks_.erase(block);
  dropped = give_back(static_cast<std::byte*>(memory), bytes);
  return {};
}

Status Arena::add(void* memory, std::size_t bytes, int fd, std::size_t offset) {
  ANYCCL_CHECK(check_mapping(memory, bytes, fd, offset));
  SharedMemory file;
  file.fd.reset(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!file.fd) return system_error(errno, "duplicate descriptor {}", fd);
  ANYCCL_TRY(file.mapping, map_peer(fd, offset + bytes, Access::read, "the file"));
  Region region;
  region.memory = std::make_shared<SharedMemory>(std::move(file));
  region.first = static_cast<std::byte*>(memory);
  region.offset = offset;
  region.used = bytes;
  region.added = true;
  const std::lock_guard lock(mutex_);
  const auto next = regions_.lower_bound(region.end());
  if (next != regions_.begin() && std::prev(next)->second.end() > region.begin())
    return error(Code::invalid_argument, "{} ({} bytes) is registered already, or in part", memory,
                 bytes);
  region.id = next_id_++;
  const std::byte* const first = region.first;
  regions_.emplace(first, std::move(region));
  count_.store(regions_.size(), std::memory_order_relaxed);
  return {};
}

Status Arena::remove(void* memory) {
  Dropped dropped;  // unmapped after the lock is gone
  const std::lock_guard lock(mutex_);
  const auto found = regions_.find(static_cast<const std::byte*>(memory));
  if (found == regions_.end() || !found->second.added)
    return error(Code::invalid_argument, "{} was not registered", memory);
  dropped = drop(found->second);
  return {};
}

Arena::Dropped Arena::give_back(std::byte* at, std::size_t bytes) {
  Region& region = region_of(at);
  region.used -= bytes;
  if (!region.inherited) add_hole(at, bytes);
  if (region.used > 0) return nullptr;
  const std::size_t whole = region.memory->mapping.size();
  if (!region.inherited) {
    if (empty_ == 0 && whole <= kLargestShared) return ++empty_, nullptr;
    remove_hole(holes_.find(region.begin()));
    bytes_ -= whole;
  }
  return drop(region);
}

Arena::Dropped Arena::drop(Region& region) {
  Dropped dropped = std::move(region.memory);
  regions_.erase(region.first);
  count_.store(regions_.size(), std::memory_order_relaxed);
  returned_.fetch_add(1, std::memory_order_relaxed);
  return dropped;
}

/// Joined with the holes next to it in its region.
void Arena::add_hole(std::byte* at, std::size_t bytes) {
  const Region& region = region_of(at);
  auto next = holes_.upper_bound(at);
  if (next != holes_.begin())
    if (const auto before = std::prev(next);
        before->first + before->second == at && at != region.begin()) {
      at = before->first;
      bytes += before->second;
      remove_hole(before);
    }
  if (next != holes_.end() && at + bytes == next->first && next->first != region.end()) {
    bytes += next->second;
    remove_hole(next);
  }
  holes_.emplace(at, bytes);
  holes_by_size_.emplace(bytes, at);
}

void Arena::remove_hole(std::map<std::byte*, std::size_t>::iterator hole) {
  holes_by_size_.erase({hole->second, hole->first});
  holes_.erase(hole);
}

std::optional<Arena::Window> Arena::find(const void* at, std::size_t bytes) const {
  if (count_.load(std::memory_order_relaxed) == 0) return {};
  const auto* first = static_cast<const std::byte*>(at);
  const std::lock_guard lock(mutex_);
  const auto next = regions_.upper_bound(first);
  if (next == regions_.begin()) return {};
  const Region& region = std::prev(next)->second;
  if (region.inherited || first + bytes > region.end()) return {};
  const std::size_t position = region.offset + static_cast<std::size_t>(first - region.begin());
  return Window{region.id, position, region.memory->mapping.size(), region.memory->fd.get()};
}

std::shared_ptr<const SharedMemory> Arena::hold(std::uint64_t id) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [at, region] : regions_)
    if (region.id == id) return region.memory;
  return nullptr;
}

std::size_t Arena::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

// The lock is held across fork, so that the child finds everything whole.
void Arena::before_fork() {
  of_process().mutex_.lock();
}
void Arena::after_fork_in_parent() {
  of_process().mutex_.unlock();
}
void Arena::after_fork_in_child() {
  of_process().become_private();
  of_process().mutex_.unlock();
}

/// In memory that is mapped shared, parent and child would see each other's writes. The child
/// forgets what add() got, and allocates nothing more in the regions of its parent.
void Arena::become_private() {
  std::erase_if(regions_, [](const auto& entry) { return entry.second.added; });
  for (auto& [at, region] : regions_) {
    region.inherited = true;
    ::mmap(region.begin(), region.memory->mapping.size(), PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, region.memory->fd.get(), 0);
    region.memory->fd.reset();
  }
  for (auto region = regions_.begin(); region != regions_.end();)
    region = region->second.used == 0 ? regions_.erase(region) : std::next(region);
  holes_.clear();
  holes_by_size_.clear();
  bytes_ = empty_ = 0;
}

}  // namespace anyccl::shm
