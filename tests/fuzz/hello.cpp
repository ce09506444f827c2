// Hellos: what a rank says of itself, and what the others make of it.

#include "input.hpp"
#include "platform/bootstrap/group/hosts.hpp"
#include "platform/bootstrap/group/member_table.hpp"
#include "platform/bootstrap/group/placement.hpp"
#include "support/transports.hpp"

namespace anyccl::fuzz {

using namespace bootstrap;

/// Each is a good one in which bytes are replaced.
void run(Input input) {
  static const Result<Hello> good =
      make_hello(Rank{0}, 2, {"boot", 1, ""}, "ANYCCL_ALGO=ring", Listeners());
  test::require(good.ok(), "make_hello");
  std::vector<Hello> hellos;
  MemberTable table;
  while (!input.empty() && hellos.size() < 4) {
    Hello hello = *good;
    for (auto count = input.take<std::uint8_t>() % 4; count > 0; --count) {
      const std::size_t at = input.take<std::uint16_t>() % sizeof hello;
      const auto bytes =
          input.take_bytes(std::min<std::size_t>(input.take<std::uint8_t>(), sizeof hello - at));
      std::copy(bytes.begin(), bytes.end(), reinterpret_cast<std::byte*>(&hello) + at);
    }
    if (!check_hello(hello).ok()) continue;
    static_cast<void>(describe(hello));
    static_cast<void>(unix_name_of(hello));
    for (const Address& address : addresses_of(hello)) static_cast<void>(to_string(address));
    static_cast<void>(compare_settings(*good, hello));
    static_cast<void>(table.add(hello));
    hellos.push_back(hello);
  }
  if (!hellos.empty()) static_cast<void>(placement_of(hellos));
}

}  // namespace anyccl::fuzz
