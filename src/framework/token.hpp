#pragma once

#include <atomic>

namespace anyccl {

/// The right to make progress on a communicator. One read-modify-write on a line that stays in this
/// core's cache.
class Token {
 public:
  explicit Token(std::atomic<bool>& token) : token_(token) {}
  ~Token() { release(); }
  Token(const Token&) = delete;
  Token& operator=(const Token&) = delete;
  bool try_take() { return held_ = !token_.exchange(true, std::memory_order_acquire); }
  bool held() const { return held_; }
  void release() {
    if (held_) token_.store(false, std::memory_order_release);
    held_ = false;
  }
  /// Nobody makes progress any more.
  void keep() { held_ = false; }

 private:
  std::atomic<bool>& token_;
  bool held_ = false;
};

}  // namespace anyccl
