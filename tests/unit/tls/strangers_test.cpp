// The handshake of TLS with somebody who does not have the key.

#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "ends.hpp"

namespace anyccl {
namespace {

using namespace test;

void expect_refused(const End& end) {
  EXPECT_EQ(end.problem.code(), Code::remote_error);
  EXPECT_NE(end.problem.message().find("TLS handshake"), std::string_view::npos)
      << end.problem.message();
  EXPECT_FALSE(end.stream->is_ready());
}

TEST(TlsHandshake, fails_at_both_ends_with_different_keys) {
  auto ends = make_ends(key_of(1), key_of(2));
  shake_hands(ends);
  for (const End& end : ends) expect_refused(end);
}

TEST(TlsHandshake, fails_with_an_end_that_does_not_encrypt) {
  for (const std::size_t side : {0U, 1U}) {
    auto ends = make_ends(key_of(1), key_of(1));
    const Bytes plain = pattern(200, 1);
    ASSERT_EQ(::send(ends[1 - side].fd(), plain.data(), plain.size(), 0), 200);
    for (int i = 0; i < 3 && ends[side].problem.ok(); ++i)
      ends[side].problem = ends[side].stream->shake_hands(ends[side].fd());
    expect_refused(ends[side]);
  }
}

TEST(TlsHandshake, fails_with_an_end_that_hangs_up) {
  for (const std::size_t side : {0U, 1U}) {
    auto ends = make_ends(key_of(1), key_of(1));
    ends[1 - side].socket.reset();
    ends[side].problem = ends[side].stream->shake_hands(ends[side].fd());
    EXPECT_EQ(ends[side].problem.code(), Code::remote_error) << ends[side].problem.message();
    EXPECT_FALSE(ends[side].stream->is_ready());
  }
}

/// What an end said cannot be said again by another one: it was for other random numbers.
TEST(TlsHandshake, cannot_be_replayed) {
  std::array<Bytes, 2> recorded;
  {
    auto ends = make_ends(key_of(1), key_of(1));
    std::array<Tap, 2> taps;
    for (std::size_t i = 0; i < 2; ++i) ends[i].stream->go_through(&taps[i]);
    shake_hands(ends);
    for (std::size_t i = 0; i < 2; ++i) recorded[i] = taps[i].sent;
  }
  for (const std::size_t side : {0U, 1U}) {
    auto ends = make_ends(key_of(1), key_of(1));
    const Bytes& said = recorded[1 - side];
    ASSERT_EQ(::send(ends[1 - side].fd(), said.data(), said.size(), 0),
              static_cast<ssize_t>(said.size()));
    for (int i = 0; i < 3 && ends[side].problem.ok(); ++i)
      ends[side].problem = ends[side].stream->shake_hands(ends[side].fd());
    expect_refused(ends[side]);
  }
}

TEST(TlsHandshake, notices_every_byte_that_is_changed) {
  for (std::size_t side = 0; side < 2; ++side)
    for (std::size_t at = 0; at < 400; at += 7) {
      auto ends = make_ends(key_of(1), key_of(1));
      Tap tap;
      bool changed = false;
      std::size_t seen = 0;
      tap.change = [&](Bytes& bytes) {
        if (!changed && at - seen < bytes.size()) {
          bytes[at - seen] ^= std::byte{0x20};
          changed = true;
        }
        seen += bytes.size();
      };
      ends[side].stream->go_through(&tap);
      shake_hands(ends);
      if (!changed) break;
      EXPECT_FALSE(ends[0].stream->is_ready() && ends[1].stream->is_ready()) << side << ' ' << at;
    }
}

struct FreeContext {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
using Context = std::unique_ptr<SSL_CTX, FreeContext>;

/// A server that anybody can make, with a certificate of its own.
Context server_with_certificate() {
  Context context(SSL_CTX_new(TLS_server_method()));
  EVP_PKEY* const key = EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256");
  X509* const certificate = X509_new();
  X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
  require(X509_set_pubkey(certificate, key) == 1 && X509_sign(certificate, key, EVP_sha256()) > 0 &&
              SSL_CTX_use_certificate(context.get(), certificate) == 1 &&
              SSL_CTX_use_PrivateKey(context.get(), key) == 1,
          "make a certificate");
  X509_free(certificate);
  EVP_PKEY_free(key);
  return context;
}

/// One end is any program that speaks TLS; the other is ours.
void expect_refused_by(std::size_t ours, SSL_CTX* context) {
  auto ends = make_ends(key_of(1), key_of(1));
  SSL* const other = SSL_new(context);
  SSL_set_fd(other, ends[1 - ours].fd());
  bool done = false;
  for (int round = 0; round < 10; ++round) {
    if (ends[ours].problem.ok())
      ends[ours].problem = ends[ours].stream->shake_hands(ends[ours].fd());
    done |= (ours == 0 ? SSL_accept(other) : SSL_connect(other)) == 1;
  }
  SSL_free(other);
  EXPECT_FALSE(done);
  expect_refused(ends[ours]);
}

TEST(TlsHandshake, believes_no_certificate) {
  expect_refused_by(0, server_with_certificate().get());
}

TEST(TlsHandshake, lets_in_no_client_without_the_key) {
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    const Context context(SSL_CTX_new(TLS_client_method()));
    SSL_CTX_set_max_proto_version(context.get(), version);
    expect_refused_by(1, context.get());
  }
}

}  // namespace
}  // namespace anyccl
