#include "platform/bootstrap/group/hosts.hpp"

#include <string_view>
#include <unordered_map>

#include "platform/bootstrap/socket/secret.hpp"
#include "platform/bootstrap/socket/wire.hpp"

namespace anyccl::bootstrap {
namespace {

/// What same_host() compares.
struct HostKey {
  std::array<std::byte, 16> boot_id{}, host_id{};
  std::uint64_t network_namespace = 0;
  bool operator==(const HostKey&) const = default;
};

struct HashHostKey {
  std::size_t operator()(const HostKey& key) const {
    const Bytes bytes = bytes_of(key);
    return std::hash<std::string_view>()(
        std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }
};

}  // namespace

std::vector<int> number_hosts(std::span<const Hello> hellos) {
  std::unordered_map<HostKey, int, HashHostKey> numbers;
  std::vector<int> host_of;
  host_of.reserve(hellos.size());
  for (const Hello& hello : hellos) {
    const HostKey key{hello.boot_id, hello.host_id, hello.network_namespace};
    host_of.push_back(numbers.try_emplace(key, static_cast<int>(numbers.size())).first->second);
  }
  return host_of;
}

RanksNear ranks_near(const Hello& mine, std::span<const Hello> hellos) {
  RanksNear near;
  for (const Hello& other : hellos) {
    if (same_process(mine, other)) ++near.in_process;
    if (same_host(mine, other)) ++near.on_host;
    if (other.boot_id == mine.boot_id && !same_network(mine, other)) ++near.in_containers_beside;
  }
  return near;
}

}  // namespace anyccl::bootstrap
