#include "platform/bootstrap/address.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "base/error.hpp"

namespace anyccl::bootstrap {
namespace {

using InterfaceList = std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)>;

Result<InterfaceList> list_interfaces() {
  ifaddrs* head = nullptr;
  if (::getifaddrs(&head) != 0) return system_error(errno, "listing the network interfaces");
  return InterfaceList(head, &::freeifaddrs);
}

bool same_host_part(const Address& a, const Address& b) {
  return a.family == b.family && a.bytes == b.bytes;
}

bool is_link_local_v6(const Address& a) {
  return a.family == 6 && a.bytes[0] == 0xfe && (a.bytes[1] & 0xc0U) == 0x80;
}

// Many hosts have the same address on these, so they rarely lead to this one.
bool is_bridge(std::string_view name) {
  constexpr std::string_view kBridges[] = {"docker", "virbr", "br-", "cni", "veth"};
  return std::any_of(std::begin(kBridges), std::end(kBridges),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

struct Candidate {
  Address address;
  int rank;  // lower is better
};

int preference(const ifaddrs& entry, const Address& address) {
  const int place = is_loopback(address) ? 2 : is_bridge(entry.ifa_name) ? 1 : 0;
  return 2 * place + (address.family == 6 ? 1 : 0);
}

std::string names_of(const ifaddrs* head) {
  std::vector<std::string> names;
  for (const ifaddrs* i = head; i != nullptr; i = i->ifa_next)
    if (std::find(names.begin(), names.end(), i->ifa_name) == names.end())
      names.emplace_back(i->ifa_name);
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

std::string to_string(const Address& address) {
  char text[INET6_ADDRSTRLEN] = "?";
  if (address.family == 4) {
    ::inet_ntop(AF_INET, address.bytes.data(), text, sizeof text);
    return fmt::format("{}:{}", text, address.port);
  }
  ::inet_ntop(AF_INET6, address.bytes.data(), text, sizeof text);
  return fmt::format("[{}]:{}", text, address.port);
}

bool is_loopback(const Address& address) {
  if (address.family == 4) return address.bytes[0] == 127;
  return address.family == 6 && address.bytes == kLoopback6;
}

bool is_valid(const Address& address) {
  return (address.family == 4 || address.family == 6) && address.port != 0;
}

Address with_port(Address address, std::uint16_t port) {
  address.port = port;
  return address;
}

SocketAddress to_socket_address(const Address& address) {
  SocketAddress made;
  if (address.family == 4) {
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(address.port);
    std::memcpy(&v4.sin_addr, address.bytes.data(), sizeof v4.sin_addr);
    std::memcpy(&made.storage, &v4, sizeof v4);
    made.length = sizeof v4;
    return made;
  }
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(address.port);
  v6.sin6_scope_id = address.scope;
  std::memcpy(&v6.sin6_addr, address.bytes.data(), sizeof v6.sin6_addr);
  std::memcpy(&made.storage, &v6, sizeof v6);
  made.length = sizeof v6;
  return made;
}

Address to_address(const sockaddr& address) {
  Address made;
  if (address.sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &address, sizeof v4);
    made.family = 4;
    made.port = ntohs(v4.sin_port);
    std::memcpy(made.bytes.data(), &v4.sin_addr, sizeof v4.sin_addr);
  } else if (address.sa_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, &address, sizeof v6);
    made.family = 6;
    made.port = ntohs(v6.sin6_port);
    made.scope = v6.sin6_scope_id;
    std::memcpy(made.bytes.data(), &v6.sin6_addr, sizeof v6.sin6_addr);
  }
  return made;
}

bool interface_matches(std::string_view spec, std::string_view name) {
  const bool exclude = spec.starts_with('^');
  if (exclude) spec.remove_prefix(1);
  const bool exact = spec.starts_with('=');
  if (exact) spec.remove_prefix(1);
  if (spec.empty()) return true;
  bool named = false;
  while (!spec.empty()) {
    const std::string_view word = spec.substr(0, spec.find(','));
    spec.remove_prefix(std::min(spec.size(), word.size() + 1));
    if (!word.empty()) named = named || (exact ? name == word : name.starts_with(word));
  }
  return named != exclude;
}

Result<std::vector<Address>> interface_addresses(std::string_view spec) {
  ANYCCL_TRY(const InterfaceList list, list_interfaces());
  std::vector<Candidate> found;
  for (const ifaddrs* i = list.get(); i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr == nullptr || (i->ifa_flags & IFF_UP) == 0) continue;
    const Address address = to_address(*i->ifa_addr);
    if (address.family == 0 || is_link_local_v6(address)) continue;
    if (interface_matches(spec, i->ifa_name)) found.push_back({address, preference(*i, address)});
  }
  if (found.empty() && !spec.empty())
    return error(
        Code::invalid_argument,
        "ANYCCL_SOCKET_IFNAME={} leaves no interface that is up and has an address; there are {}",
        spec, names_of(list.get()));
  std::stable_sort(found.begin(), found.end(),
                   [](const Candidate& a, const Candidate& b) { return a.rank < b.rank; });
  std::vector<Address> addresses;
  for (const Candidate& c : found) addresses.push_back(c.address);
  return addresses;
}

Result<bool> is_local(const Address& address) {
  if (is_loopback(address)) return true;
  ANYCCL_TRY(const InterfaceList list, list_interfaces());
  for (const ifaddrs* i = list.get(); i != nullptr; i = i->ifa_next)
    if (i->ifa_addr != nullptr && same_host_part(to_address(*i->ifa_addr), address)) return true;
  return false;
}

bool is_numeric(const std::string& host) {
  in6_addr ignored{};
  return ::inet_pton(AF_INET, host.c_str(), &ignored) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), &ignored) == 1;
}

Result<std::vector<Address>> resolve(const std::string& host, std::uint16_t port) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* head = nullptr;
  const int problem = ::getaddrinfo(host.c_str(), nullptr, &wanted, &head);
  if (problem != 0) {
    const Code code =
        problem == EAI_AGAIN || problem == EAI_SYSTEM ? Code::system_error : Code::invalid_argument;
    return error(code, "cannot find the address of {}: {}", host, ::gai_strerror(problem));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> list(head, &::freeaddrinfo);
  std::vector<Address> addresses;
  for (const addrinfo* i = list.get(); i != nullptr; i = i->ai_next) {
    const Address address = with_port(to_address(*i->ai_addr), port);
    const bool fresh = std::find(addresses.begin(), addresses.end(), address) == addresses.end();
    if (address.family != 0 && fresh) addresses.push_back(address);
  }
  if (addresses.empty()) return error(Code::invalid_argument, "{} has no internet address", host);
  return addresses;
}

}  // namespace anyccl::bootstrap
