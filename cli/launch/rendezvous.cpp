#include "launch/rendezvous.hpp"

#include <fmt/ranges.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <fstream>
#include <random>

#include "base/config.hpp"
#include "base/error.hpp"

namespace anyccl::cli {
namespace {

/// A socket bound to `port` on all addresses.
Result<UniqueFd> bind_port(int port) {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return system_error(errno, "create a TCP socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return system_error(errno, "bind TCP port {}", port);
  return socket;
}

/// Marks the port as taken, for others that choose ports, while the result is open. Empty if the
/// port is taken.
UniqueFd claim_port(int port) {
  UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // In the abstract name space, which leaves nothing behind.
  const auto name = fmt::format("anyccl-port-{}", port);
  name.copy(address.sun_path + 1, sizeof address.sun_path - 1);
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (!socket || ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), bytes) != 0)
    return {};
  return socket;
}

/// The first port that the system gives to connections of its own choosing.
int first_ephemeral() {
  int first = 32768;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> first;
  return first;
}

constexpr std::size_t kSecretDigits = 32;

bool is_secret(std::string_view text) {
  return text.size() == kSecretDigits &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isxdigit(c); });
}

/// A secret that others can read is none.
Status check_private(const std::string& file) {
  struct stat facts {};
  if (::stat(file.c_str(), &facts) != 0) return system_error(errno, "--secret-file {}", file);
  if ((facts.st_mode & 077U) == 0) return {};
  return error(Code::invalid_argument,
               "--secret-file {}: other users may read it (mode {:o}): chmod 600 {}", file,
               facts.st_mode & 0777U, file);
}

}  // namespace

// Below the ports that the system hands out by itself, so that no connection of another program
// takes one of the two before they are used. If that range leaves hardly any below it, from all.
Result<PortPair> free_port_pair() {
  constexpr int kTries = 1000, kFirst = 10000, kLast = 65534;
  const int end = first_ephemeral() > 2 * kFirst ? first_ephemeral() - 1 : kLast;
  std::random_device random;
  std::uniform_int_distribution<int> any(kFirst, end - 1);
  for (int i = 0; i < kTries; ++i) {
    PortPair pair{any(random), {}};
    bool free = true;
    for (int k = 0; k < 2 && free; ++k) {
      pair.claims[k] = claim_port(pair.first + k);
      free = pair.claims[k] && bind_port(pair.first + k).ok();
    }
    if (free) return pair;
  }
  return error(Code::system_error,
               "found no two neighbouring free TCP ports in {} tries; use --port", kTries);
}

Result<std::string> random_secret() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    return system_error(errno, "get {} random bytes", bytes.size());
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

Result<std::string> read_shared_secret(const std::string& file) {
  if (file.empty()) {
    const std::string secret = value_now("ANYCCL_SECRET").value_or("");
    if (is_secret(secret)) return secret;
    return error(Code::invalid_argument,
                 "the nodes of a job need one secret, and ANYCCL_SECRET is {}: make one with "
                 "`anyccl secret FILE`, copy the file to all nodes, and give each of them "
                 "--secret-file FILE",
                 secret.empty() ? "not set" : "not 32 hex digits");
  }
  ANYCCL_CHECK(check_private(file));
  std::ifstream in(file);
  std::string secret;
  in >> secret;
  if (is_secret(secret)) return secret;
  return error(
      Code::invalid_argument,
      "--secret-file {}: there are no 32 hex digits in it; `anyccl secret FILE` writes them", file);
}

}  // namespace anyccl::cli
