#pragma once
// Descriptors that would keep something alive in a forked child are kept in a PrivateFd: sockets of
// links, listeners, files of shared memory.

#include <cstdint>

#include "base/unique_fd.hpp"

namespace anyccl {

/// Owns a file descriptor that belongs to this process alone: a forked child has it closed from its
/// first moment. So a peer at the other end of a socket sees when this process ends, whatever
/// children it leaves behind.
class PrivateFd {
 public:
  PrivateFd() = default;
  explicit PrivateFd(UniqueFd fd);
  PrivateFd(PrivateFd&& other) noexcept
      : fd_(std::move(other.fd_)), generation_(other.generation_) {}
  /// Swaps the two: `other` closes what this one had.
  PrivateFd& operator=(PrivateFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(generation_, other.generation_);
    return *this;
  }
  ~PrivateFd() { static_cast<void>(release()); }

  int get() const { return fd_.get(); }
  explicit operator bool() const { return static_cast<bool>(fd_); }
  /// Nothing in a forked child.
  UniqueFd release();

 private:
  UniqueFd fd_;
  std::uint64_t generation_ = 0;
};

}  // namespace anyccl
