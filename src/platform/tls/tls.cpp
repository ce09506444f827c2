// How both ends of a connection are set up: what is spoken, and the key by which they know each
// other.

#include "platform/tls/tls.hpp"

#include <openssl/ssl.h>

#include <algorithm>
#include <iterator>

#include "base/error.hpp"
#include "platform/tls/tls_stream.hpp"

namespace anyccl::tls {
namespace {

constexpr unsigned char kSuite[] = {0x13, 0x01};  // TLS_AES_128_GCM_SHA256
constexpr const char* kSuiteName = "TLS_AES_128_GCM_SHA256";
constexpr const char* kGroups = "X25519:P-256";
constexpr unsigned char kIdentity[] = {'a', 'n', 'y', 'c', 'c', 'l'};

/// What a system call brings at most: some records.
constexpr std::size_t kReadAhead = std::size_t{64} << 10;

/// The key in the form in which OpenSSL wants it: a session that may be resumed. Null: out of
/// memory, or after the handshake.
SSL_SESSION* session_of(SSL* ssl) {
  const Key* const key = TlsStream::of(ssl).key();
  if (key == nullptr) return nullptr;
  SSL_SESSION* const session = SSL_SESSION_new();
  if (session == nullptr) return nullptr;
  const auto* const bytes = reinterpret_cast<const unsigned char*>(key->data());
  if (SSL_SESSION_set1_master_key(session, bytes, key->size()) == 1 &&
      SSL_SESSION_set_cipher(session, SSL_CIPHER_find(ssl, kSuite)) == 1 &&
      SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1)
    return session;
  SSL_SESSION_free(session);
  return nullptr;
}

int offer_key(SSL* ssl, const EVP_MD*, const unsigned char** identity, std::size_t* bytes,
              SSL_SESSION** session) {
  *identity = kIdentity;
  *bytes = sizeof kIdentity;
  *session = session_of(ssl);
  return *session != nullptr ? 1 : 0;
}

int find_key(SSL* ssl, const unsigned char* identity, std::size_t bytes, SSL_SESSION** session) {
  const bool is_ours =
      std::equal(identity, identity + bytes, std::begin(kIdentity), std::end(kIdentity));
  *session = is_ours ? session_of(ssl) : nullptr;
  return 1;  // Without a session the handshake fails, as there is no certificate.
}

/// Returns null if OpenSSL cannot make one.
SSL_CTX* make_context(Side side) {
  // No atexit handler and no configuration file: the process may use OpenSSL for itself.
  OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT | OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
  SSL_CTX* const context =
      SSL_CTX_new(side == Side::client ? TLS_client_method() : TLS_server_method());
  if (context == nullptr) return nullptr;
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_clear_options(context, SSL_OP_ENABLE_MIDDLEBOX_COMPAT);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_default_read_buffer_len(context, kReadAhead);
  if (side == Side::client) {
    SSL_CTX_set_psk_use_session_callback(context, offer_key);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);  // No certificate is good enough.
  } else {
    SSL_CTX_set_psk_find_session_callback(context, find_key);  // And it has none itself.
  }
  if (SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 &&
      SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) == 1 &&
      SSL_CTX_set_ciphersuites(context, kSuiteName) == 1 &&
      SSL_CTX_set1_groups_list(context, kGroups) == 1 && SSL_CTX_set_num_tickets(context, 0) == 1)
    return context;
  SSL_CTX_free(context);
  return nullptr;
}

/// Made once, and kept until the process ends. Null: OpenSSL cannot make one.
SSL_CTX* context_of(Side side) {
  static SSL_CTX* const client = make_context(Side::client);
  static SSL_CTX* const server = make_context(Side::server);
  return side == Side::client ? client : server;
}

}  // namespace

Status is_available() {
  return {};
}

Result<std::unique_ptr<SecureStream>> make_stream(Side side, const Key& key,
                                                  std::uint32_t records_per_key) {
  SSL_CTX* const context = context_of(side);
  if (context == nullptr) return error(Code::system_error, "OpenSSL cannot do TLS 1.3 here");
  auto stream = std::make_unique<TlsStream>(key, records_per_key);
  if (!stream->begin(context, side)) return error(Code::system_error, "OpenSSL has no memory");
  return std::unique_ptr<SecureStream>(std::move(stream));
}

}  // namespace anyccl::tls
