#pragma once
// A fuzz target is run(): it gets bytes that an attacker may have written, hands them to a parser,
// and returns. Whatever they are, nothing may crash, hang, or be read or written beyond its end.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace anyccl::fuzz {

/// The bytes of one run, taken one after the other.
class Input {
 public:
  explicit Input(std::span<const std::byte> bytes) : left_(bytes) {}
  bool empty() const { return left_.empty(); }
  /// As it lies in memory; zeros where the bytes end.
  template <typename T>
  requires std::is_trivially_copyable_v<T> T take() {
    T value{};
    const std::span<const std::byte> bytes = take_bytes(sizeof value);
    std::copy(bytes.begin(), bytes.end(), reinterpret_cast<std::byte*>(&value));
    return value;
  }
  /// `most` bytes, or all that are left.
  std::span<const std::byte> take_bytes(std::size_t most) {
    const auto taken = left_.first(std::min(most, left_.size()));
    left_ = left_.subspan(taken.size());
    return taken;
  }
  std::span<const std::byte> rest() { return take_bytes(left_.size()); }
  std::string text() {
    const auto bytes = rest();
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  /// Up to the next newline, without it.
  std::string line() {
    const auto end = std::find(left_.begin(), left_.end(), std::byte{'\n'});
    const auto bytes = take_bytes(static_cast<std::size_t>(end - left_.begin()));
    take_bytes(1);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

 private:
  std::span<const std::byte> left_;
};

/// The target of this program.
void run(Input input);

}  // namespace anyccl::fuzz
