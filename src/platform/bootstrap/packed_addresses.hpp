#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "anyccl/status.hpp"
#include "platform/bootstrap/address.hpp"

namespace anyccl::bootstrap {

// A list of addresses as messages carry it: of each its family, its port and its 4 or 16 bytes; a
// family of 0, or the end of the room, ends the list. The interface of link-local addresses is left
// out, as it means nothing elsewhere.

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
