#include "platform/transport/segment/arena.hpp"

#include "base/error.hpp"

namespace anyccl {

Arena& Arena::of_process() {
  static Arena* const arena = new Arena;  // never destroyed: memory may be freed during exit
  return *arena;
}

Result<void*> Arena::allocate(std::size_t bytes) {
  if (bytes > (std::size_t{1} << 46))
    return error(Code::invalid_argument, "anycclMemAlloc of {} bytes", bytes);
  const std::size_t whole = (std::max<std::size_t>(bytes, 1) + 4095) / 4096 * 4096;
  ANYCCL_TRY(SharedMemory memory, create_shared(whole, false, "anycclMemAlloc"));
  ANYCCL_CHECK(populate(memory, 0, whole));
  std::byte* const at = memory.mapping.data();
  const std::lock_guard lock(mutex_);
  blocks_.emplace(at, Block{next_id_++, std::move(memory)});
  count_.store(blocks_.size(), std::memory_order_relaxed);
  return static_cast<void*>(at);
}

Status Arena::free(void* memory) {
  if (memory == nullptr) return {};
  const std::lock_guard lock(mutex_);
  if (blocks_.erase(static_cast<const std::byte*>(memory)) == 0)
    return error(Code::invalid_argument, "anycclMemFree of {}, which anycclMemAlloc did not return",
                 fmt::ptr(memory));
  count_.store(blocks_.size(), std::memory_order_relaxed);
  return {};
}

std::optional<Arena::Window> Arena::find(const void* at, std::size_t bytes) const {
  if (count_.load(std::memory_order_relaxed) == 0) return {};
  const auto* first = static_cast<const std::byte*>(at);
  const std::lock_guard lock(mutex_);
  auto block = blocks_.upper_bound(first);
  if (block == blocks_.begin()) return {};
  --block;
  const Mapping& mapping = block->second.memory.mapping;
  if (first + bytes > mapping.data() + mapping.size()) return {};
  return Window{block->second.id, mapping.data(), mapping.size(), block->second.memory.fd.get()};
}

}  // namespace anyccl
