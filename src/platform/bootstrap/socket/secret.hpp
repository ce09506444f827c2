#pragma once
// A secret decides who may join a group. A handshake proves with an HMAC that a peer knows it, and
// does not send it. The keys of sessions and the secrets of groups are derived from it with the
// functions here. Any thread may call them.

#include <array>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "anyccl/status.hpp"

namespace anyccl::bootstrap {

using Bytes = std::span<const std::byte>;
using Mac = std::array<std::byte, 32>;

/// Fills `into` from the kernel's random source.
Status random_bytes(std::span<std::byte> into);

/// HMAC-SHA256 over `label`, a zero byte and `parts`, one after the other. Callers keep it
/// unambiguous: for one label every part but the last has a fixed size.
Result<Mac> hmac(Bytes key, std::string_view label, std::initializer_list<Bytes> parts);

/// Compares in a time that does not depend on the contents.
bool same_mac(const Mac& a, const Mac& b);

/// 128 random bits; whoever knows them may join. Default: all zero, which protects nothing.
class Secret {
 public:
  static constexpr std::size_t kBytes = 16;

  Secret() = default;
  explicit Secret(const std::array<std::byte, kBytes>& bytes) : bytes_(bytes) {}
  static Result<Secret> random();
  /// From 32 hex digits. Errors: invalid_argument, without repeating the text.
  static Result<Secret> parse(std::string_view hex);

  std::string hex() const;
  Bytes bytes() const { return bytes_; }
  /// A secret of its own for each label and context; it does not reveal this one.
  Result<Secret> derive(std::string_view label, Bytes context = {}) const;
  bool operator==(const Secret&) const = default;

 private:
  std::array<std::byte, kBytes> bytes_{};
};

}  // namespace anyccl::bootstrap
