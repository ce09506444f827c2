#pragma once
// Memory that local peers read where it lies (anyccl.hpp includes this).

#include <cstddef>
#include <limits>
#include <new>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "anyccl/anyccl.h"
#include "anyccl/group.hpp"
#include "anyccl/status.hpp"
#include "anyccl/stream.hpp"
#include "anyccl/view.hpp"

namespace anyccl {

namespace detail {
/// Null with a code where there is none.
template <typename T>
anycclResult_t allocate(std::size_t count, T** memory) {
  void* bytes = nullptr;
  const anycclResult_t result = anycclMemAlloc(&bytes, count * sizeof(T));
  *memory = static_cast<T*>(bytes);
  return result;
}
template <typename T>
constexpr bool overflows(std::size_t count) {
  return count > std::numeric_limits<std::size_t>::max() / sizeof(T);
}
}  // namespace detail

/// `size()` elements of undefined contents, aligned to 64 bytes, which local peers can read there:
/// long operations may copy less. Freed with the object: no operation may be using it then. See
/// anycclMemAlloc.
template <typename T>
class Buffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  /// Errors: invalid_argument (larger than any memory), system_error.
  static Result<Buffer> create(std::size_t count) {
    if (detail::overflows<T>(count))
      return detail::refused(Code::invalid_argument,
                             "count " + std::to_string(count) + " overflows");
    Buffer buffer;
    const Status status = detail::status_of(detail::allocate(count, &buffer.data_));
    if (!status.ok()) return status;
    buffer.size_ = count;
    return buffer;
  }
  Buffer() = default;
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { static_cast<void>(anycclMemFree(data_)); }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  operator View() const { return View(data_, size_, dtype_of<T>()); }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};
template <typename T>
View view(const Buffer<T>& elements) {
  return elements;
}

/// Gives such memory to containers: `std::vector<float, Allocator<float>>`. Throws std::bad_alloc
/// where there is none, as containers expect.
template <typename T>
class Allocator {
 public:
  using value_type = T;
  Allocator() = default;
  template <typename U>
  Allocator(const Allocator<U>&) {}

  T* allocate(std::size_t count) {
    T* memory = nullptr;
    if (detail::overflows<T>(count) || detail::allocate(count, &memory) != anycclSuccess)
      throw std::bad_alloc();
    return memory;
  }
  void deallocate(T* memory, std::size_t) { static_cast<void>(anycclMemFree(memory)); }
  bool operator==(const Allocator&) const = default;
};

/// Memory of the program's own that is made such memory for as long as the object lives: a mapping
/// of a sealed memfd. No operation may be using it when the object ends, and the program unmaps it
/// only after that. See anycclMemRegister.
class MemoryRegistration {
 public:
  /// `memory` is mapped with MAP_SHARED from `offset` on of `fd`, which may be closed afterwards.
  /// Errors: invalid_argument if it is no such mapping, or overlaps one there is; system_error.
  static Result<MemoryRegistration> create(std::span<std::byte> memory, int fd,
                                           std::size_t offset = 0) {
    const Status status =
        detail::status_of(anycclMemRegister(memory.data(), memory.size(), fd, offset));
    if (!status.ok()) return status;
    MemoryRegistration registration;
    registration.memory_ = memory.data();
    return registration;
  }
  MemoryRegistration() = default;
  MemoryRegistration(MemoryRegistration&& other) noexcept
      : memory_(std::exchange(other.memory_, nullptr)) {}
  MemoryRegistration& operator=(MemoryRegistration&& other) noexcept {
    std::swap(memory_, other.memory_);
    return *this;
  }
  MemoryRegistration(const MemoryRegistration&) = delete;
  MemoryRegistration& operator=(const MemoryRegistration&) = delete;
  ~MemoryRegistration() {
    if (memory_ != nullptr) static_cast<void>(anycclMemDeregister(memory_));
  }

 private:
  void* memory_ = nullptr;
};

}  // namespace anyccl
