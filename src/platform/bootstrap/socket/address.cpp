#include "platform/bootstrap/socket/address.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <net/if.h>

#include <cstring>

namespace anyccl::bootstrap {

std::string to_string(const Address& address) {
  char text[INET6_ADDRSTRLEN] = "?";
  if (address.family == 4) {
    ::inet_ntop(AF_INET, address.bytes.data(), text, sizeof text);
    return fmt::format("{}:{}", text, address.port);
  }
  ::inet_ntop(AF_INET6, address.bytes.data(), text, sizeof text);
  char name[IF_NAMESIZE] = "";
  const bool named = address.scope != 0 && ::if_indextoname(address.scope, name) != nullptr;
  return fmt::format("[{}{}{}]:{}", text, named ? "%" : "", name, address.port);
}

bool is_loopback(const Address& address) {
  if (address.family == 4) return address.bytes[0] == 127;
  return address.family == 6 && address.bytes == kLoopback6;
}

bool is_link_local(const Address& address) {
  return address.family == 6 && address.bytes[0] == 0xfe && (address.bytes[1] & 0xc0U) == 0x80;
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

}  // namespace anyccl::bootstrap
