#include "platform/bootstrap/socket/packed_addresses.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace anyccl::bootstrap {
namespace {

/// The port of the first address.
std::uint16_t port_in(std::span<const std::uint8_t> packed) {
  return static_cast<std::uint16_t>(packed[1] | packed[2] << 8);
}

}  // namespace

void pack(std::span<const Address> addresses, std::span<std::uint8_t> into) {
  std::fill(into.begin(), into.end(), std::uint8_t{0});
  if (addresses.empty()) return;
  const std::size_t for_last = packed_bytes(addresses.back().family);
  std::size_t used = 0;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    const Address& address = addresses[i];
    const std::size_t bytes = packed_bytes(address.family);
    const bool is_last = i + 1 == addresses.size();
    if (used + bytes + (is_last ? 0 : for_last) > into.size()) continue;
    into[used] = static_cast<std::uint8_t>(address.family);
    into[used + 1] = static_cast<std::uint8_t>(address.port & 0xffU);
    into[used + 2] = static_cast<std::uint8_t>(address.port >> 8U);
    std::copy_n(address.bytes.begin(), bytes - 3,
                into.begin() + static_cast<std::ptrdiff_t>(used) + 3);
    used += bytes;
  }
}

Status check_packed(std::span<const std::uint8_t> packed) {
  while (!packed.empty() && packed[0] != 0) {
    const bool known = packed[0] == 4 || packed[0] == 6;
    const std::size_t bytes = packed_bytes(packed[0]);
    if (!known || packed.size() < bytes)
      return error(Code::invalid_argument, "a list of addresses is malformed");
    if (port_in(packed) == 0) return error(Code::invalid_argument, "an address has no port");
    packed = packed.subspan(bytes);
  }
  return {};
}

Result<std::vector<Address>> unpack(std::span<const std::uint8_t> packed) {
  ANYCCL_CHECK(check_packed(packed));
  std::vector<Address> addresses;
  while (!packed.empty() && packed[0] != 0) {
    const std::size_t bytes = packed_bytes(packed[0]);
    Address address;
    address.family = packed[0];
    address.port = port_in(packed);
    std::copy_n(packed.begin() + 3, bytes - 3, address.bytes.begin());
    addresses.push_back(address);
    packed = packed.subspan(bytes);
  }
  return addresses;
}

}  // namespace anyccl::bootstrap
