#pragma once
// A list of addresses travels packed, in hellos and unique ids. Each address takes a byte for its
// family, two for its port, with the low one first, and 4 or 16 for the rest. A family of 0, or
// the end of the room, ends the list. The interface of link-local addresses is left out, as it
// means nothing elsewhere.

#include <cstdint>
#include <span>
#include <vector>

#include "anyccl/status.hpp"
#include "platform/bootstrap/socket/address.hpp"

namespace anyccl::bootstrap {

/// Bytes that an address takes.
constexpr std::size_t packed_bytes(int family) {
  return 3 + (family == 4 ? std::size_t{4} : std::size_t{16});
}

/// As many of `addresses` as `into` has room for, the first ones and the last one.
void pack(std::span<const Address> addresses, std::span<std::uint8_t> into);

/// Whether unpack() can read it. Errors: invalid_argument.
Status check_packed(std::span<const std::uint8_t> packed);
/// Errors: as check_packed().
Result<std::vector<Address>> unpack(std::span<const std::uint8_t> packed);

}  // namespace anyccl::bootstrap
