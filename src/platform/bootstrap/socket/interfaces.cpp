#include "platform/bootstrap/socket/interfaces.hpp"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <memory>

#include "base/error.hpp"
#include "base/per_process.hpp"
#include "base/recent.hpp"

namespace anyccl::bootstrap {
namespace {

using InterfaceList = std::shared_ptr<const ifaddrs>;

Result<InterfaceList> find_interfaces() {
  ifaddrs* head = nullptr;
  if (::getifaddrs(&head) != 0) return system_error(errno, "listing the network interfaces");
  return InterfaceList(head, [head](const ifaddrs*) { ::freeifaddrs(head); });
}

/// To join a group takes several looks at them.
Result<InterfaceList> list_interfaces() {
  constexpr std::chrono::milliseconds kMost{100};
  auto& recent = per_process<Recent<Result<InterfaceList>>>();
  Result<InterfaceList> list = recent.get(kMost, &find_interfaces);
  if (!list.ok()) recent.forget();
  return list;
}

bool same_host_part(const Address& a, const Address& b) {
  return a.family == b.family && a.bytes == b.bytes;
}

// Many hosts have the same address on these, so they rarely lead to this one.
bool is_bridge(std::string_view name) {
  constexpr std::string_view kBridges[] = {"docker", "virbr", "br-",    "cni",
                                           "veth",   "cali",  "podman", "lxdbr"};
  return std::any_of(std::begin(kBridges), std::end(kBridges),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

/// How likely an address leads to this host: lower is likelier.
enum class AddressKind { v4, v6, link_local, no_carrier, bridge, loopback };

AddressKind kind_of(const ifaddrs& entry, const Address& address) {
  if (is_loopback(address)) return AddressKind::loopback;
  if (is_bridge(entry.ifa_name)) return AddressKind::bridge;
  if ((entry.ifa_flags & IFF_RUNNING) == 0) return AddressKind::no_carrier;
  if (is_link_local(address)) return AddressKind::link_local;
  return address.family == 4 ? AddressKind::v4 : AddressKind::v6;
}

/// Whether it is the link-local address of a bridge, or of an interface without a carrier.
bool is_useless(const Address& address, AddressKind kind) {
  return is_link_local(address) && kind != AddressKind::link_local;
}

struct Candidate {
  InterfaceAddress found;
  AddressKind kind;
};

/// What is up, with an internet address.
std::vector<Candidate> candidates(const ifaddrs* head, std::string_view spec) {
  std::vector<Candidate> found;
  for (const ifaddrs* i = head; i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr == nullptr || (i->ifa_flags & IFF_UP) == 0) continue;
    const Address address = to_address(*i->ifa_addr);
    if (address.family == 0 || !interface_matches(spec, i->ifa_name)) continue;
    const AddressKind kind = kind_of(*i, address);
    if (!is_useless(address, kind)) found.push_back({{i->ifa_name, address}, kind});
  }
  return found;
}

std::string names_of(const ifaddrs* head) {
  std::vector<std::string> names;
  for (const ifaddrs* i = head; i != nullptr; i = i->ifa_next)
    if (std::find(names.begin(), names.end(), i->ifa_name) == names.end())
      names.emplace_back(i->ifa_name);
  return fmt::format("{}", fmt::join(names, ", "));
}

/// The one that is missed least.
std::vector<Address>::iterator least_likely(std::vector<Address>& addresses) {
  const auto same_kind = [](const Address& a, const Address& b) {
    return a.family == b.family && is_loopback(a) == is_loopback(b);
  };
  auto last = addresses.end();
  for (auto it = addresses.end(); it != addresses.begin();) {
    --it;
    const auto alike = std::count_if(addresses.begin(), addresses.end(),
                                     [&](const Address& a) { return same_kind(a, *it); });
    if (alike > 1) return it;
    if (last == addresses.end() && !is_loopback(*it)) last = it;
  }
  return last == addresses.end() ? addresses.end() - 1 : last;
}

}  // namespace

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

Result<std::vector<InterfaceAddress>> addresses_by_interface(std::string_view spec) {
  ANYCCL_TRY(const InterfaceList list, list_interfaces());
  std::vector<Candidate> found = candidates(list.get(), spec);
  if (found.empty() && !spec.empty())
    return error(
        Code::invalid_argument,
        "ANYCCL_SOCKET_IFNAME={} leaves no interface that is up and has an address; there are {}",
        spec, names_of(list.get()));
  std::stable_sort(found.begin(), found.end(),
                   [](const Candidate& a, const Candidate& b) { return a.kind < b.kind; });
  std::vector<InterfaceAddress> all;
  for (Candidate& c : found) all.push_back(std::move(c.found));
  return all;
}

Result<std::vector<Address>> interface_addresses(std::string_view spec) {
  ANYCCL_TRY(const std::vector<InterfaceAddress> all, addresses_by_interface(spec));
  std::vector<Address> addresses;
  for (const InterfaceAddress& one : all) addresses.push_back(one.address);
  return addresses;
}

void keep_likeliest(std::vector<Address>& addresses, std::size_t most) {
  while (addresses.size() > most) addresses.erase(least_likely(addresses));
}

Result<bool> is_local(const Address& address) {
  if (is_loopback(address)) return true;
  ANYCCL_TRY(const InterfaceList list, list_interfaces());
  for (const ifaddrs* i = list.get(); i != nullptr; i = i->ifa_next)
    if (i->ifa_addr != nullptr && same_host_part(to_address(*i->ifa_addr), address)) return true;
  return false;
}

Result<OwnNetwork> OwnNetwork::find() {
  ANYCCL_TRY(const InterfaceList list, list_interfaces());
  OwnNetwork own;
  for (const Candidate& c : candidates(list.get(), "")) {
    if (c.kind == AddressKind::link_local)
      own.scopes.push_back(c.found.address.scope);
    else if (c.kind == AddressKind::v4 || c.kind == AddressKind::v6)
      (c.found.address.family == 4 ? own.has_v4 : own.has_v6) = true;
  }
  return own;
}

std::vector<Endpoint> OwnNetwork::endpoints_to(std::span<const Address> addresses) const {
  std::vector<Endpoint> endpoints;
  for (const Address& address : addresses) {
    if (!is_link_local(address) || address.scope != 0) {
      endpoints.push_back({"", address});
      continue;
    }
    for (const std::uint32_t scope : scopes) {
      endpoints.push_back({"", address});
      endpoints.back().address.scope = scope;
    }
  }
  return endpoints;
}

std::string OwnNetwork::missing_family(std::span<const Endpoint> endpoints) const {
  bool wants_v4 = false, wants_v6 = false;
  for (const Endpoint& e : endpoints) {
    if (e.local() || is_link_local(e.address)) return "";
    if (is_loopback(e.address)) continue;  // of this host, if it is a way at all
    (e.address.family == 4 ? wants_v4 : wants_v6) = true;
  }
  if ((wants_v4 && has_v4) || (wants_v6 && has_v6) || wants_v4 == wants_v6) return "";
  return fmt::format("no common address family: it has {} addresses, and this host has none",
                     wants_v4 ? "IPv4" : "IPv6");
}

}  // namespace anyccl::bootstrap
