#include "platform/transports/shm/heap.hpp"

#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/error.hpp"

namespace anyccl::shm {
namespace {

constexpr std::size_t kPage = 4096;

Result<std::shared_ptr<Volume>> make_volume(std::size_t bytes, std::size_t bell_bytes,
                                            std::uint32_t number) {
  ANYCCL_CHECK(
      expect_left(kWorthALook));  // the first pages of a communicator, and short operations
  auto volume = std::make_shared<Volume>();
  volume->number = number;
  ANYCCL_TRY(volume->out, create_returnable(bytes, "a communicator's memory"));
  ANYCCL_TRY(volume->bells, create_shared(bell_bytes, true, "a communicator's doorbell page"));
  volume->out_fd = PrivateFd(std::move(volume->out.fd));
  volume->bells_fd = PrivateFd(std::move(volume->bells.fd));
  return volume;
}

}  // namespace

bool BlockReader::is_done(std::uint64_t key) const {
  // Pairs with the release in ~ShmTransport(): all that it read was read before. Another key: it
  // has gone on to another communicator.
  return reads->load(std::memory_order_acquire) != key;
}

bool BlockReader::is_dead() const {
  if (process == nullptr) return false;
  pollfd exit{process->handle.get(), POLLIN, 0};
  return ::poll(&exit, 1, 0) > 0;
}

Result<Block> make_single_block(std::size_t bytes) {
  Block block;
  ANYCCL_TRY(block.volume, make_volume(bytes, kPage, 0));
  block.bytes = bytes;
  return block;
}

Result<Block> make_private_block(std::size_t bytes) {
  Block block;
  block.volume = std::make_shared<Volume>();
  ANYCCL_TRY(block.volume->out.mapping, create_private(bytes, "the communicator's memory"));
  ANYCCL_TRY(block.volume->bells.mapping,
             create_private(kPage, "the communicator's doorbell page"));
  block.volume->out.returned = SharedMemory::Returned::to_process;
  block.bytes = bytes;
  return block;
}

// --- the heap ------------------------------------------------------------------------------------

/// What of a volume is free.
struct SharedHeap::Space {
  explicit Space(std::shared_ptr<Volume> made) : volume(std::move(made)), bells(Volume::kBells) {
    std::iota(bells.rbegin(), bells.rend(), 0U);
  }

  bool take(std::size_t bytes, Block& block) {
    const auto found = std::find_if(free.begin(), free.end(),
                                    [&](const auto& extent) { return extent.second >= bytes; });
    if (found == free.end() || bells.empty()) return false;
    block.volume = volume;
    block.position = found->first;
    block.bytes = bytes;
    const std::size_t rest = found->second - bytes;
    free.erase(found);
    if (rest > 0) free.emplace(block.position + bytes, rest);
    block.bell = bells.back();
    bells.pop_back();
    return true;
  }
  void put(const Block& block) {
    auto at = free.emplace(block.position, block.bytes).first;
    if (const auto next = std::next(at);
        next != free.end() && at->first + at->second == next->first) {
      at->second += next->second;
      free.erase(next);
    }
    if (at != free.begin())
      if (const auto before = std::prev(at); before->first + before->second == at->first) {
        before->second += at->second;
        free.erase(at);
      }
    bells.push_back(block.bell);
  }

  const std::shared_ptr<Volume> volume;
  std::map<std::size_t, std::size_t> free{{0, Volume::kBytes}};  ///< Bytes, by position.
  std::vector<std::uint32_t> bells;
};

bool SharedHeap::is_affordable() {
  const auto is_unlimited = [](auto resource) {
    rlimit limit{};
    return ::getrlimit(resource, &limit) == 0 && limit.rlim_cur == RLIM_INFINITY;
  };
  // Without /proc a volume could not be given back, so no block would be used again.
  return is_unlimited(RLIMIT_AS) && is_unlimited(RLIMIT_FSIZE) &&
         ::access("/proc/self/fd", X_OK) == 0;
}

Result<Block> SharedHeap::allocate(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  Block block;
  block.heap = shared_from_this();
  collect(false);
  if (take(bytes, block)) return block;
  collect(true);
  if (take(bytes, block)) return block;
  ANYCCL_TRY(auto volume, make_volume(Volume::kBytes, Volume::kBells * Volume::kBellBytes,
                                      static_cast<std::uint32_t>(spaces_.size()) + 1));
  spaces_.push_back(std::make_shared<Space>(std::move(volume)));
  spaces_.back()->take(bytes, block);
  return block;
}

bool SharedHeap::take(std::size_t bytes, Block& block) const {
  return std::any_of(spaces_.begin(), spaces_.end(),
                     [&](const auto& space) { return space->take(bytes, block); });
}

void SharedHeap::release(Block block, std::uint64_t key, std::vector<BlockReader> readers) {
  block.heap.reset();  // it would keep itself
  const std::lock_guard lock(mutex_);
  released_.push_back({std::move(block), key, std::move(readers)});
  collect(false);
}

void SharedHeap::collect(bool look_for_the_dead) {
  std::erase_if(released_, [&](Released& one) {
    std::erase_if(one.readers, [&](const BlockReader& reader) {
      return reader.is_done(one.key) || (look_for_the_dead && reader.is_dead());
    });
    if (!one.readers.empty()) return false;
    recycle(one.block);
    return true;
  });
}

/// What cannot be zeroed is not used again: a word of another communicator might look like one of
/// the next.
void SharedHeap::recycle(const Block& block) {
  if (!give_back(block.volume->out, block.position, block.bytes)) return;
  std::memset(block.in(), 0, Volume::kBellBytes);
  spaces_[block.volume->number - 1]->put(block);
}

}  // namespace anyccl::shm
