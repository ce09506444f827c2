#pragma once
// A SecureStream is all that the bootstrap and links know of TLS: they shake hands, read and write
// through it where a connection is encrypted. platform/tls makes it.

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <span>

#include "anyccl/status.hpp"

namespace anyccl {

/// What stands between the bytes of one connection and its nonblocking stream socket: encrypts what
/// goes, decrypts what comes. Its destructor sends nothing, so a forked child may run it.
///
/// Threads: one at a time.
class SecureStream {
 public:
  /// The socket, as the stream sees it.
  class Wire {
   public:
    virtual ~Wire() = default;
    /// As send(2) and recv(2), without waiting.
    virtual ssize_t send(int fd, std::span<const std::byte> bytes) = 0;
    virtual ssize_t receive(int fd, std::span<std::byte> into) = 0;
  };
  virtual ~SecureStream() = default;

  // --- the beginning ----------------------------------------------------------------------------
  /// Goes on with the handshake as far as the socket allows. Errors: remote_error: the peer is not
  /// the one that has the key, or the connection has ended.
  virtual Status shake_hands(int fd) = 0;
  /// Whether both ends have shown that they have the key, as far as this one can see.
  virtual bool is_ready() const = 0;
  /// The events to poll(2) for until then.
  virtual short events() const = 0;
  /// From now on bytes go through `wire`, which outlives the stream.
  virtual void go_through(Wire* wire) = 0;

  // --- then -------------------------------------------------------------------------------------
  /// As readv(2), where EBADMSG means that what came is not what the peer has sent: see problem().
  /// Without that, the end of the stream may also be an end of the connection that the peer did not
  /// want.
  virtual ssize_t read(int fd, std::span<const iovec> parts) = 0;
  /// As writev(2). What was taken may wait here until flush().
  virtual ssize_t write(int fd, std::span<const iovec> parts) = 0;
  /// Bytes for the socket that wait here.
  virtual std::size_t unsent() const = 0;
  /// Sends them as far as the socket takes them. False, with errno: it takes nothing more.
  virtual bool flush(int fd) = 0;
  /// Whether bytes were read from the socket that read() has not returned: poll(2) does not see
  /// them.
  virtual bool holds_unread() const = 0;
  /// Tells the peer that nothing more comes.
  virtual void close(int fd) = 0;
  /// What the peer has sent, after EBADMSG: "data that ..."
  virtual const char* problem() const = 0;
};

}  // namespace anyccl
