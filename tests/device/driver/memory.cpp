#include "memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <sstream>
#include <string>

#include "machine.hpp"
#include "shared_state.hpp"

namespace anyccl::simulated {
namespace {

/// All memory that this process knows of. Looking up takes a shared lock, so that it orders no
/// threads.
struct Known {
  std::shared_mutex mutex;
  std::map<std::uintptr_t, Block> blocks;
  std::map<std::uintptr_t, Pinned> pinned;
  std::uint64_t ids = 0;
};
Known& known() {
  static Known& all = *new Known;  // threads outlive destructors
  return all;
}

template <typename Map>
auto containing(Map& map, std::uintptr_t at, std::size_t bytes) {
  auto found = map.upper_bound(at);
  if (found == map.begin()) return map.end();
  --found;
  const std::size_t inside = at - found->first;
  const std::size_t all = found->second.bytes;
  return inside < all && bytes <= all - inside ? found : map.end();
}

std::size_t whole_pages(std::size_t bytes) {
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

/// A line of /proc/self/maps.
struct Mapping {
  std::uintptr_t begin = 0, end = 0;
  bool readable = false, writable = false;
  std::uint64_t file = 0, offset = 0;
};

bool parse_mapping(const std::string& line, Mapping& mapping) {
  std::istringstream words(line);
  char dash = 0, colon = 0;
  std::string rights;
  std::uint64_t major = 0, minor = 0, node = 0;
  words >> std::hex >> mapping.begin >> dash >> mapping.end >> rights >> mapping.offset >> major >>
      colon >> minor >> std::dec >> node;
  if (!words || rights.size() < 2) return false;
  mapping.readable = rights[0] == 'r';
  mapping.writable = rights[1] == 'w';
  mapping.file = node == 0 ? 0 : (major << 32 | minor) * 1'000'003 + node;
  return true;
}

/// Whether all of the range is mapped with the rights; and the name of its first word.
bool is_mapped(std::uintptr_t at, std::size_t bytes, bool for_writing, std::uint64_t& word) {
  std::ifstream maps("/proc/self/maps");
  std::uintptr_t reached = at;
  for (std::string line; reached < at + bytes && std::getline(maps, line);) {
    Mapping mapping;
    if (!parse_mapping(line, mapping) || reached < mapping.begin || reached >= mapping.end)
      continue;
    if (!mapping.readable || (for_writing && !mapping.writable)) return false;
    if (reached == at) {
      const std::uint64_t file =
          mapping.file != 0 ? mapping.file : static_cast<std::uint64_t>(getpid()) << 40 | 1;
      word =
          file * 0x100000001b3U + (mapping.file != 0 ? mapping.offset + (at - mapping.begin) : at);
    }
    reached = mapping.end;
  }
  return reached >= at + bytes;
}

/// Both mappings of a block; false if the system has no room for them.
bool map_block(Block& block) {
  const std::size_t whole = whole_pages(block.bytes);
  // One page more, so that a block never touches the next one.
  void* const address = mmap(nullptr, whole + kPageBytes, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) return false;
  void* const view = mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_SHARED, memory_file(),
                          static_cast<off_t>(block.offset));
  if (view == MAP_FAILED) {
    munmap(address, whole + kPageBytes);
    return false;
  }
  block.base = reinterpret_cast<std::uintptr_t>(address);
  block.view = static_cast<std::byte*>(view);
  return true;
}

void unmap_block(const Block& block) {
  const std::size_t whole = whole_pages(block.bytes);
  munmap(block.view, whole);
  munmap(reinterpret_cast<void*>(block.base), whole + kPageBytes);
}

std::uintptr_t keep(Block& block) {
  Known& all = known();
  const std::unique_lock lock(all.mutex);
  block.id = ++all.ids;
  all.blocks[block.base] = block;
  return block.base;
}

}  // namespace

Place find(std::uintptr_t at, std::size_t bytes) {
  Known& all = known();
  const std::shared_lock lock(all.mutex);
  if (const auto found = containing(all.blocks, at, bytes); found != all.blocks.end()) {
    const Block& block = found->second;
    const std::size_t inside = at - block.base;
    return {Place::Kind::device, block.view + inside, block.device, false,
            (std::uint64_t{1} << 62) + block.offset + inside};
  }
  if (const auto found = containing(all.pinned, at, bytes); found != all.pinned.end()) {
    const Pinned& range = found->second;
    return {Place::Kind::host, reinterpret_cast<std::byte*>(at), -1, range.read_only,
            range.word + (at - range.base)};
  }
  return {};
}

bool find_block(std::uintptr_t at, Block& found) {
  Known& all = known();
  const std::shared_lock lock(all.mutex);
  const auto block = containing(all.blocks, at, 1);
  if (block == all.blocks.end()) return false;
  found = block->second;
  return true;
}

bool find_pinned(std::uintptr_t at, Pinned& found) {
  Known& all = known();
  const std::shared_lock lock(all.mutex);
  const auto range = containing(all.pinned, at, 1);
  if (range == all.pinned.end()) return false;
  found = range->second;
  return true;
}

cuda::Error allocate_block(int device, std::size_t bytes, std::uintptr_t& base) {
  const Extent extent = take_memory(device, bytes);
  if (extent.id == 0) return cuda::kOutOfMemory;
  Block block;
  block.bytes = bytes;
  block.device = device;
  block.offset = extent.offset;
  block.extent = extent.id;
  if (!map_block(block)) {
    give_memory(device, extent, bytes);
    return cuda::kOutOfMemory;
  }
  base = keep(block);
  return cuda::kSuccess;
}

cuda::Error open_block(const Block& theirs, std::uintptr_t& base) {
  {
    Known& all = known();
    const std::unique_lock lock(all.mutex);
    for (auto& [at, block] : all.blocks) {
      if (block.opened == 0 || block.extent != theirs.extent) continue;
      ++block.opened;
      base = at;
      return cuda::kSuccess;
    }
  }
  Block block = theirs;
  block.opened = 1;
  if (!map_block(block)) return cuda::kOutOfMemory;
  base = keep(block);
  return cuda::kSuccess;
}

cuda::Error drop_block(std::uintptr_t base, bool is_opened) {
  Block block;
  {
    Known& all = known();
    const std::unique_lock lock(all.mutex);
    const auto found = all.blocks.find(base);
    if (found == all.blocks.end() || (found->second.opened > 0) != is_opened)
      return cuda::kInvalidValue;
    if (is_opened && --found->second.opened > 0) return cuda::kSuccess;
    block = found->second;
    all.blocks.erase(found);
  }
  unmap_block(block);
  if (!is_opened) give_memory(block.device, {block.offset, block.extent}, block.bytes);
  return cuda::kSuccess;
}

cuda::Error allocate_pinned(std::size_t bytes, void*& at) {
  if (bytes == 0) return cuda::kInvalidValue;
  void* const made =
      mmap(nullptr, whole_pages(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) return cuda::kOutOfMemory;
  at = made;
  return pin(reinterpret_cast<std::uintptr_t>(made), bytes, false, true);
}

cuda::Error pin(std::uintptr_t at, std::size_t bytes, bool read_only, bool owned) {
  Pinned range{at, bytes, read_only, owned, 0};
  if (at == 0 || bytes == 0 || at + bytes < at || !is_mapped(at, bytes, !read_only, range.word))
    return cuda::kInvalidValue;
  Known& all = known();
  const std::unique_lock lock(all.mutex);
  auto next = all.pinned.lower_bound(at);
  const bool next_overlaps = next != all.pinned.end() && next->first < at + bytes;
  if (next_overlaps || containing(all.pinned, at, 1) != all.pinned.end())
    return cuda::kAlreadyRegistered;
  all.pinned[at] = range;
  return cuda::kSuccess;
}

cuda::Error unpin(std::uintptr_t at, bool owned) {
  Known& all = known();
  const std::unique_lock lock(all.mutex);
  const auto found = all.pinned.find(at);
  if (found == all.pinned.end() || found->second.owned != owned)
    return owned ? cuda::kInvalidValue : cuda::kNotRegistered;
  if (owned) munmap(reinterpret_cast<void*>(at), whole_pages(found->second.bytes));
  all.pinned.erase(found);
  return cuda::kSuccess;
}

}  // namespace anyccl::simulated
