#include "platform/bootstrap/socket/secret.hpp"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>

#include "base/error.hpp"

namespace anyccl::bootstrap {
namespace {

struct FreeContext {
  void operator()(EVP_MAC_CTX* context) const { EVP_MAC_CTX_free(context); }
};
using Context = std::unique_ptr<EVP_MAC_CTX, FreeContext>;

// Fetched once, because fetching takes a lock that all threads share, and kept until the process
// ends. No atexit handler and no configuration file: the process may use libcrypto for itself.
EVP_MAC* hmac_algorithm() {
  static EVP_MAC* const fetched = [] {
    OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT | OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
    return EVP_MAC_fetch(nullptr, "HMAC", nullptr);
  }();
  return fetched;
}

const unsigned char* raw(Bytes bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

bool update(EVP_MAC_CTX* context, Bytes bytes) {
  return EVP_MAC_update(context, raw(bytes), bytes.size()) == 1;
}

}  // namespace

Status random_bytes(std::span<std::byte> into) {
  while (!into.empty()) {
    const ssize_t n = ::getrandom(into.data(), into.size(), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_error(errno, "getrandom");
    into = into.subspan(static_cast<std::size_t>(n));
  }
  return {};
}

Result<Mac> hmac(Bytes key, std::string_view label, std::initializer_list<Bytes> parts) {
  const Status failed(Code::system_error, "libcrypto could not compute an HMAC-SHA256");
  if (hmac_algorithm() == nullptr) return failed;
  const Context context(EVP_MAC_CTX_new(hmac_algorithm()));
  if (!context) return failed;
  char digest[] = "SHA256";
  const OSSL_PARAM parameters[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
      OSSL_PARAM_construct_end()};
  if (EVP_MAC_init(context.get(), raw(key), key.size(), parameters) != 1) return failed;
  const std::byte separator{0};
  bool fine = update(context.get(), std::as_bytes(std::span(label))) &&
              update(context.get(), Bytes(&separator, 1));
  for (const Bytes part : parts) fine = fine && update(context.get(), part);
  Mac mac{};
  std::size_t size = 0;
  fine = fine && EVP_MAC_final(context.get(), reinterpret_cast<unsigned char*>(mac.data()), &size,
                               mac.size()) == 1;
  if (!fine || size != mac.size()) return failed;
  return mac;
}

bool same_mac(const Mac& a, const Mac& b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

Result<Secret> Secret::random() {
  Secret made;
  ANYCCL_CHECK(random_bytes(made.bytes_));
  return made;
}

Result<Secret> Secret::parse(std::string_view hex) {
  const Status malformed =
      error(Code::invalid_argument, "a secret is {} hex digits, not these {} characters",
            2 * kBytes, hex.size());
  if (hex.size() != 2 * kBytes) return malformed;
  Secret parsed;
  for (std::size_t i = 0; i < kBytes; ++i) {
    unsigned value = 0;
    const char* digits = hex.data() + 2 * i;
    const auto [end, problem] = std::from_chars(digits, digits + 2, value, 16);
    if (problem != std::errc{} || end != digits + 2) return malformed;
    parsed.bytes_[i] = static_cast<std::byte>(value);
  }
  return parsed;
}

std::string Secret::hex() const {
  std::string text;
  for (const std::byte b : bytes_) text += fmt::format("{:02x}", static_cast<unsigned>(b));
  return text;
}

Result<Secret> Secret::derive(std::string_view label, Bytes context) const {
  ANYCCL_TRY(const Mac mac, hmac(bytes_, label, {context}));
  Secret child;
  std::copy_n(mac.begin(), kBytes, child.bytes_.begin());
  return child;
}

}  // namespace anyccl::bootstrap
