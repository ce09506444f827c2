#pragma once
// The buffer pool keeps memory for the payloads of frames, because fresh memory costs a page fault
// per page. All links of a process share one pool. Readers of links and the socket transport take
// buffers from it.

#include <array>
#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "base/per_process.hpp"

namespace anyccl::link {

/// Memory aligned to 64 bytes.
class Buffer {
 public:
  Buffer() = default;
  /// Empty if there is no memory.
  static Buffer allocate(std::size_t capacity);

  std::byte* data() const { return memory_.get(); }
  std::size_t capacity() const { return memory_ ? capacity_ : 0; }
  explicit operator bool() const { return memory_ != nullptr; }

 private:
  static constexpr std::align_val_t kAlignment{64};
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete[](memory, kAlignment); }
  };
  std::unique_ptr<std::byte[], Free> memory_;
  std::size_t capacity_ = 0;
};

/// Buffers for payloads that nobody has asked for yet, or that are only read once. Any thread.
class BufferPool {
 public:
  /// The one that all links of this process share.
  static BufferPool& of_process() { return per_process<BufferPool>(); }
  /// A buffer of at least `bytes` bytes; empty if there is no memory.
  Buffer take(std::size_t bytes);
  void give(Buffer buffer);

 private:
  static constexpr std::size_t kSmallest = 256, kKept = std::size_t{64} << 20;
  static std::size_t size_class(std::size_t bytes);

  std::mutex mutex_;
  std::array<std::vector<Buffer>, 32> free_;  // By size class: c has kSmallest << c bytes.
  std::size_t kept_ = 0;
};

}  // namespace anyccl::link
