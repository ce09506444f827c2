// Unique ids, which users pass around.

#include "platform/bootstrap/rendezvous/unique_id.hpp"

#include "input.hpp"
#include "platform/bootstrap/socket/address.hpp"

namespace anyccl::fuzz {

using namespace bootstrap;

/// Bytes that claim to be one; else one that is right but for its addresses, which are lists of
/// bytes.
void run(Input input) {
  std::array<char, kUniqueIdBytes> bytes{};
  const auto taken = input.take_bytes(bytes.size());
  std::copy(taken.begin(), taken.end(), reinterpret_cast<std::byte*>(bytes.data()));
  const auto id = UniqueId::from_bytes(bytes);
  if (id.ok())
    for (const Address& address : id->addresses()) static_cast<void>(to_string(address));
  const std::string packed(bytes.begin(), bytes.end());
  static_cast<void>(unpack({reinterpret_cast<const std::uint8_t*>(packed.data()), packed.size()}));
}

}  // namespace anyccl::fuzz
