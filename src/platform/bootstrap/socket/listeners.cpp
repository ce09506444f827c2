#include "platform/bootstrap/socket/listeners.hpp"

#include "base/descriptor_limit.hpp"
#include "base/error.hpp"
#include "platform/bootstrap/socket/interfaces.hpp"
#include "platform/bootstrap/socket/secret.hpp"

namespace anyccl::bootstrap {

Result<std::vector<TcpListener>> listen_on_interfaces(std::string_view interfaces, PortRange ports,
                                                      std::size_t most) {
  raise_descriptor_limit();
  ANYCCL_TRY(std::vector<Address> addresses, interface_addresses(interfaces));
  keep_likeliest(addresses, most);
  std::vector<TcpListener> listeners;
  Status problem;
  for (const Address& address : addresses) {
    Result<TcpListener> listener = listen_tcp(address, ports);
    if (listener.ok())
      listeners.push_back(*std::move(listener));
    else if (listener.status().code() != Code::unsupported)
      return listener.status();
    else  // An IPv6 address may not be usable yet; the others are enough.
      problem = listener.status();
  }
  if (listeners.empty() && !problem.ok()) return problem;
  return listeners;
}

Result<Listeners> Listeners::open(std::string_view interfaces, PortRange ports) {
  Listeners made;
  ANYCCL_TRY(const Secret name, Secret::random());
  made.unix_name = "anyccl." + name.hex();
  ANYCCL_TRY(made.unix_socket, listen_unix(made.unix_name));
  ANYCCL_TRY(made.tcp, listen_on_interfaces(interfaces, ports));
  return made;
}

}  // namespace anyccl::bootstrap
