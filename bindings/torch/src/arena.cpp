#include "arena.hpp"

#include <c10/core/CPUAllocator.h>

#include <atomic>
#include <limits>

#include "anyccl/anyccl.h"
#include "torch.hpp"

namespace anyccl::torch {
namespace {

constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();

void free_in_arena(void* memory) {
  static_cast<void>(anycclMemFree(memory));
}

/// In front of the previous allocator. Every tensor keeps its own way of being freed, so it may be
/// enabled and disabled at any time.
class ArenaAllocator final : public c10::Allocator {
 public:
  explicit ArenaAllocator(c10::Allocator* before) : before_(before) {}

  void serve_from(std::size_t least_bytes) {
    least_bytes_.store(least_bytes, std::memory_order_relaxed);
  }

  /// Asks the previous allocator for fewer bytes than serve_from() has set, and where the arena has
  /// none.
  c10::DataPtr allocate(std::size_t bytes) override {
    void* memory = nullptr;
    if (bytes < least_bytes_.load(std::memory_order_relaxed) ||
        anycclMemAlloc(&memory, bytes) != anycclSuccess)
      return before_->allocate(bytes);
    return {memory, memory, free_in_arena, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return free_either; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

  static ArenaAllocator& installed();

 private:
  /// The deleter of raw_allocate(), which drops that of the memory.
  static void free_either(void* memory) {
    if (memory != nullptr && anycclMemFree(memory) != anycclSuccess)
      installed().before_->raw_deallocate(memory);
  }

  c10::Allocator* const before_;
  std::atomic<std::size_t> least_bytes_{kNever};
};

/// Never destroyed, and left installed: storages point to the allocator that they came from.
ArenaAllocator& ArenaAllocator::installed() {
  static ArenaAllocator* const allocator = [] {
    auto* const made = new ArenaAllocator(c10::GetCPUAllocator());
    c10::SetCPUAllocator(made, std::numeric_limits<std::uint8_t>::max());
    return made;
  }();
  return *allocator;
}

}  // namespace

void enable_arena(std::size_t least_bytes) {
  ArenaAllocator::installed().serve_from(least_bytes);
}

void disable_arena() {
  ArenaAllocator::installed().serve_from(kNever);
}

}  // namespace anyccl::torch
