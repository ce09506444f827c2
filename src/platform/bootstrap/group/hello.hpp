#pragma once
// A hello introduces a rank to all others: it says where the rank runs and listens, and with which
// version and settings. The thread that creates a communicator makes it before the rank joins. The
// root server collects the hellos of a group, and every rank gets them. A hello travels as it is in
// memory, in a frame (rendezvous/frame.hpp), or as a difference in a table (table.hpp).

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "anyccl/status.hpp"
#include "anyccl/types.hpp"
#include "platform/bootstrap/socket/listeners.hpp"
#include "platform/bootstrap/socket/packed_addresses.hpp"
#include "platform/probe/cpus.hpp"

namespace anyccl::bootstrap {

/// The identity of a host: two ranks share a host only if all of this is equal.
struct HostIdentity {
  std::string boot_id;                  ///< /proc/sys/kernel/random/boot_id
  std::uint64_t network_namespace = 0;  ///< Inode of /proc/self/ns/net.
  std::string host_id;                  ///< ANYCCL_HOSTID, or empty.
};

/// The facts that a rank tells all others about itself when it joins.
struct Hello {
  static constexpr std::size_t kSettings = 512;

  std::array<char, 8> magic{};
  std::uint32_t protocol = 0;
  std::uint32_t library = 0;  ///< ANYCCL_VERSION_CODE
  std::uint32_t rank = 0, size = 0;
  std::array<std::byte, 16> process{};  ///< Random, one per process.
  std::uint32_t pid = 0, uid = 0;
  std::array<std::byte, 16> boot_id{}, host_id{};  ///< Digests of HostIdentity's texts.
  std::uint64_t network_namespace = 0;
  std::uint64_t machine_table = 0;  ///< Hash of the measurements found for this machine; 0: none.
  probe::CpuSet cpus{};             ///< That its process may run on.
  std::uint32_t quota = 0;          ///< Cores that its cgroups allow; 0: no limit.
  std::uint32_t near_cache = 0, near_node = 0;  ///< Nearness of its CPUs.
  std::uint32_t unused = 0;
  std::array<char, 64> host_name{};
  std::array<char, 48> unix_name{};
  /// Where it listens. See addresses_of().
  std::array<std::uint8_t, kMostListeners * packed_bytes(6)> addresses{};
  std::array<char, kSettings> settings{};  ///< "ANYCCL_ALGO=ring ANYCCL_PROTO=LL"
};
static_assert(sizeof(Hello) <= 1024);  // every rank gets the hello of every other one
static_assert(std::has_unique_object_representations_v<Hello>);

/// `settings`: the variables that must be the same on every rank, as NAME=value words; a variable
/// that is not mentioned counts as not set. Errors: invalid_argument when they are too long or
/// `rank` is not in [0, size); system_error.
Result<Hello> make_hello(Rank rank, int size, const HostIdentity& host, std::string_view settings,
                         const Listeners& listeners);

/// Errors: invalid_argument when they are too long.
Status put_settings(Hello& hello, std::string_view settings);

/// "rank 3 (host nodeA, pid 12)"
std::string describe(const Hello& hello);
/// "host nodeA, pid 12"
std::string whereabouts(const Hello& hello);
std::string unix_name_of(const Hello& hello);
/// Those of a hello that check_hello() let through.
std::vector<Address> addresses_of(const Hello& hello);

/// Whether what came over the wire can be used: texts end, addresses are addresses, rank < size.
/// Errors: invalid_argument.
Status check_hello(const Hello& hello);

/// Ranks a and b may use shared memory; connecting and mapping must still succeed.
bool same_host(const Hello& a, const Hello& b);
/// Each other's loopback addresses lead to each other, whatever ANYCCL_HOSTID says.
bool same_network(const Hello& a, const Hello& b);
bool same_process(const Hello& a, const Hello& b);
/// From one call of join(): each has a unix socket with a name of its own.
bool same_call(const Hello& a, const Hello& b);

/// Errors: invalid_usage naming the variable, both values and both ranks.
Status compare_settings(const Hello& a, const Hello& b);

}  // namespace anyccl::bootstrap
