#include "platform/bootstrap/group/hello.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "anyccl/anyccl.h"
#include "base/error.hpp"
#include "base/printable.hpp"
#include "platform/bootstrap/auth/handshake.hpp"
#include "platform/bootstrap/socket/secret.hpp"

namespace anyccl::bootstrap {
namespace {

constexpr std::array<char, 8> kMagic{'a', 'n', 'y', 'c', 'c', 'l', 'H', 'I'};

using Digest16 = std::array<std::byte, 16>;

Result<Digest16> digest_of(std::string_view text) {
  ANYCCL_TRY(const Mac mac, hmac(Secret().bytes(), "host", {std::as_bytes(std::span(text))}));
  Digest16 digest{};
  std::copy_n(mac.begin(), digest.size(), digest.begin());
  return digest;
}

// Made once and never changed. A forked child has its parent's, and another pid.
Result<Digest16> process_nonce() {
  static const Result<Digest16> nonce = []() -> Result<Digest16> {
    Digest16 made{};
    ANYCCL_CHECK(random_bytes(made));
    return made;
  }();
  return nonce;
}

/// Keeps a zero at the end.
template <std::size_t N>
void put_text(std::array<char, N>& into, std::string_view text) {
  std::copy_n(text.begin(), std::min(text.size(), N - 1), into.begin());
}

template <std::size_t N>
bool text_ends(const std::array<char, N>& text) {
  return std::memchr(text.data(), 0, N) != nullptr;
}

template <std::size_t N>
std::string_view view_of(const std::array<char, N>& text) {
  return {text.data(),
          static_cast<std::size_t>(std::find(text.begin(), text.end(), '\0') - text.begin())};
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    if (!word.empty()) words.push_back(word);
    text.remove_prefix(std::min(text.size(), word.size() + 1));
  }
  return words;
}

std::string_view name_of(std::string_view word) {
  return word.substr(0, word.find('='));
}

/// Returns the value of a variable; "not set" if it is missing or empty.
std::string value_in(std::string_view settings, std::string_view name) {
  for (const std::string_view word : words_of(settings))
    if (name_of(word) == name && word.size() > name.size() + 1)
      return std::string(word.substr(name.size() + 1));
  return "not set";
}

}  // namespace

Status put_settings(Hello& hello, std::string_view settings) {
  if (settings.size() >= Hello::kSettings)
    return error(Code::invalid_argument, "the settings {} are longer than {} characters", settings,
                 Hello::kSettings - 1);
  hello.settings = {};
  put_text(hello.settings, settings);
  return {};
}

Result<Hello> make_hello(Rank rank, int size, const HostIdentity& host, std::string_view settings,
                         const Listeners& listeners) {
  Hello made;
  ANYCCL_CHECK(put_settings(made, settings));
  made.magic = kMagic;
  made.protocol = kProtocol;
  made.library = ANYCCL_VERSION_CODE;
  made.rank = uindex(rank);
  made.size = static_cast<std::uint32_t>(size);
  ANYCCL_TRY(made.process, process_nonce());
  made.pid = static_cast<std::uint32_t>(::getpid());
  made.uid = ::geteuid();
  ANYCCL_TRY(made.boot_id, digest_of(host.boot_id));
  ANYCCL_TRY(made.host_id, digest_of(host.host_id));
  made.network_namespace = host.network_namespace;
  ::gethostname(made.host_name.data(), made.host_name.size() - 1);
  put_text(made.unix_name, listeners.unix_name);
  std::vector<Address> addresses;
  for (const TcpListener& listener : listeners.tcp) addresses.push_back(listener.address);
  pack(addresses, made.addresses);
  ANYCCL_CHECK(check_hello(made));
  return made;
}

std::string whereabouts(const Hello& hello) {
  return fmt::format("host {}, pid {}", printable(view_of(hello.host_name)), hello.pid);
}

std::string describe(const Hello& hello) {
  return fmt::format("rank {} ({})", hello.rank, whereabouts(hello));
}

std::string unix_name_of(const Hello& hello) {
  return std::string(view_of(hello.unix_name));
}

std::vector<Address> addresses_of(const Hello& hello) {
  const Result<std::vector<Address>> addresses = unpack(hello.addresses);
  return addresses.ok() ? *addresses : std::vector<Address>();
}

Status check_hello(const Hello& hello) {
  if (hello.magic != kMagic || hello.protocol != kProtocol || !text_ends(hello.host_name) ||
      !text_ends(hello.unix_name) || !text_ends(hello.settings))
    return error(Code::invalid_argument,
                 "a rank introduced itself in a form that cannot be understood");
  if (hello.size == 0 || hello.size > kLargestGroup)
    return error(Code::invalid_argument, "a group has 1 to {} ranks, not {}", kLargestGroup,
                 static_cast<std::int32_t>(hello.size));
  if (hello.rank >= hello.size)
    return error(Code::invalid_argument, "{} is not in a group of {} ranks: they are 0 to {}",
                 describe(hello), hello.size, hello.size - 1);
  if (const Status s = check_packed(hello.addresses); !s.ok())
    return error(Code::invalid_argument, "{}: {}", describe(hello), s.message());
  return {};
}

bool same_network(const Hello& a, const Hello& b) {
  return a.boot_id == b.boot_id && a.network_namespace == b.network_namespace;
}

bool same_host(const Hello& a, const Hello& b) {
  return same_network(a, b) && a.host_id == b.host_id;
}

bool same_process(const Hello& a, const Hello& b) {
  return a.process == b.process && a.pid == b.pid;
}

bool same_call(const Hello& a, const Hello& b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

Status compare_settings(const Hello& a, const Hello& b) {
  const auto shown = [](const std::string& value) {
    return value.empty() ? "nothing" : printable(value);
  };
  for (const Hello* one : {&a, &b}) {
    for (const std::string_view word : words_of(view_of(one->settings))) {
      const std::string_view name = name_of(word);
      const std::string mine = value_in(view_of(a.settings), name);
      const std::string other = value_in(view_of(b.settings), name);
      if (mine != other)
        return error(Code::invalid_usage,
                     "{} must be the same on every rank, but it is {} at {} and {} at {}",
                     printable(name), shown(mine), describe(a), shown(other), describe(b));
    }
  }
  return {};
}

}  // namespace anyccl::bootstrap
