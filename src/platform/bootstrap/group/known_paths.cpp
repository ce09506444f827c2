#include "platform/bootstrap/group/known_paths.hpp"

#include <algorithm>

#include "base/per_process.hpp"

namespace anyccl::bootstrap {
namespace {

/// Without its interface, too.
Address without_port(Address address) {
  address.port = 0;
  address.scope = 0;
  return address;
}

}  // namespace

KnownPaths& KnownPaths::of_process() {
  return per_process<KnownPaths>();
}

void KnownPaths::remember(const Hello& peer, const Address& address) {
  const std::lock_guard lock(mutex_);
  reached_[host_of(peer)] = without_port(address);
}

void KnownPaths::put_known_first(const Hello& peer, std::vector<Address>& addresses) const {
  const std::lock_guard lock(mutex_);
  const auto known = reached_.find(host_of(peer));
  if (known == reached_.end()) return;
  std::stable_partition(addresses.begin(), addresses.end(),
                        [&](const Address& a) { return without_port(a) == known->second; });
}

std::vector<Endpoint> endpoints_of(const Hello& mine, const Hello& peer, const OwnNetwork& own,
                                   bool force_tcp) {
  std::vector<Address> addresses = addresses_of(peer);
  // Loopback only leads to `peer` inside one network namespace.
  if (!same_network(mine, peer)) std::erase_if(addresses, is_loopback);
  KnownPaths::of_process().put_known_first(peer, addresses);
  std::vector<Endpoint> endpoints = own.endpoints_to(addresses);
  if (same_host(mine, peer) && !force_tcp)
    endpoints.insert(endpoints.begin(), Endpoint{unix_name_of(peer), {}});
  return endpoints;
}

}  // namespace anyccl::bootstrap
