#include "platform/link/buffer_pool.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace anyccl::link {

Buffer Buffer::allocate(std::size_t capacity) {
  Buffer buffer;
  buffer.memory_.reset(
      static_cast<std::byte*>(::operator new[](capacity, kAlignment, std::nothrow)));
  buffer.capacity_ = capacity;
  return buffer;
}

std::size_t BufferPool::size_class(std::size_t bytes) {
  return static_cast<std::size_t>(std::bit_width((std::max(bytes, kSmallest) - 1) / kSmallest));
}

Buffer BufferPool::take(std::size_t bytes) {
  const std::size_t c = size_class(bytes);
  {
    const std::lock_guard lock(mutex_);
    if (!free_[c].empty()) {
      Buffer buffer = std::move(free_[c].back());
      free_[c].pop_back();
      kept_ -= buffer.capacity();
      return buffer;
    }
  }
  return Buffer::allocate(kSmallest << c);
}

void BufferPool::give(Buffer buffer) {
  if (!buffer) return;
  const std::lock_guard lock(mutex_);
  if (kept_ + buffer.capacity() > kKept) return;
  kept_ += buffer.capacity();
  free_[size_class(buffer.capacity())].push_back(std::move(buffer));
}

}  // namespace anyccl::link
