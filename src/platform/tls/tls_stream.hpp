#pragma once
// A TLS stream is the SecureStream that OpenSSL gives: records of TLS are on the wire.
// make_stream() creates it (tls.hpp). The bootstrap and the link use it through its base class.

#include <openssl/ssl.h>

#include <array>
#include <memory>
#include <vector>

#include "platform/tls/tls.hpp"

namespace anyccl::tls {

/// An SSL object that reads its socket when it needs bytes, and whose records wait in a buffer,
/// from which several go with one system call.
class TlsStream final : public SecureStream {
 public:
  TlsStream(const Key& key, std::uint32_t records_per_key)
      : key_(key), records_per_key_(records_per_key) {}
  ~TlsStream() override;
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;
  /// False: out of memory.
  bool begin(SSL_CTX* context, Side side);

  /// That of an SSL object.
  static TlsStream& of(SSL* ssl);
  /// Null after the handshake.
  const Key* key() const { return is_ready_ ? nullptr : &key_; }

  /// Ok does not mean that the handshake is done: see is_ready().
  Status shake_hands(int fd) override;
  bool is_ready() const override { return is_ready_ && unsent() == 0; }
  short events() const override;
  void go_through(Wire* wire) override { wire_ = wire; }

  ssize_t read(int fd, std::span<const iovec> parts) override;
  ssize_t write(int fd, std::span<const iovec> parts) override;
  std::size_t unsent() const override { return out_.size() - sent_; }
  /// False: the socket takes nothing more. True does not mean that all is sent: see unsent().
  bool flush(int fd) override;
  bool holds_unread() const override { return SSL_has_pending(ssl_.get()) == 1; }
  void close(int fd) override;
  const char* problem() const override { return problem_; }

 private:
  static constexpr std::size_t kRecord = 16384;  // What a record has room for.

  struct Free {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };
  friend struct Socket;  // What the SSL object takes for its socket.

  ssize_t no_bytes(int result);
  Status check_key() const;
  std::span<const std::byte> next_record(std::span<const iovec> parts, std::size_t skip);
  bool encrypt(std::span<const std::byte> bytes);
  void fail(int result);

  std::unique_ptr<SSL, Free> ssl_;
  Key key_;
  const std::uint32_t records_per_key_;
  std::uint32_t records_ = 0;  // Sent with this key.
  bool is_ready_ = false;
  bool has_ended_ = false;           // Nothing more comes.
  int error_ = 0;                    // The errno that read() has from now on; 0: none.
  const char* problem_ = "nothing";  // If that is EBADMSG,
  const char* why_ = "no reason";    // and OpenSSL's word for it.
  int fd_ = -1;                      // During a call.
  Wire* wire_ = nullptr;             // Null for the socket itself.
  std::vector<std::byte> out_;       // Records for the socket,
  std::size_t sent_ = 0;             // and how much of them is gone.
  int failed_ = 0;                   // The errno with which the socket took nothing more; 0: none.
  std::unique_ptr<std::array<std::byte, kRecord>> gathered_;
};

}  // namespace anyccl::tls
