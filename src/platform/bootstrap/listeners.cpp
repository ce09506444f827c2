#include "platform/bootstrap/listeners.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "platform/bootstrap/hello.hpp"
#include "platform/bootstrap/secret.hpp"

namespace anyccl::bootstrap {

Result<std::vector<TcpListener>> listen_on_interfaces(std::string_view interfaces,
                                                      std::size_t most) {
  ANYCCL_TRY(std::vector<Address> addresses, interface_addresses(interfaces));
  if (addresses.size() > most) {
    const auto loopback = std::find_if(addresses.begin(), addresses.end(), is_loopback);
    if (loopback != addresses.end()) std::swap(addresses[most - 1], *loopback);
    addresses.resize(most);
  }
  std::vector<TcpListener> listeners;
  Status problem;
  for (const Address& address : addresses) {
    Result<TcpListener> listener = listen_tcp(address);
    if (listener.ok())
      listeners.push_back(*std::move(listener));
    else  // An IPv6 address may not be usable yet; the others are enough.
      problem = listener.status();
  }
  if (listeners.empty() && !problem.ok()) return problem;
  return listeners;
}

Result<Listeners> Listeners::open(std::string_view interfaces) {
  Listeners made;
  ANYCCL_TRY(const Secret name, Secret::random());
  made.unix_name = "anyccl." + name.hex();
  ANYCCL_TRY(made.unix_socket, listen_unix(made.unix_name));
  ANYCCL_TRY(made.tcp, listen_on_interfaces(interfaces, Hello::kAddresses));
  return made;
}

}  // namespace anyccl::bootstrap
