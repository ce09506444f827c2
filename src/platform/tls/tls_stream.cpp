#include "platform/tls/tls_stream.hpp"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.hpp"

namespace anyccl::tls {
namespace {

/// Records that wait for the socket: enough for few system calls, and little enough for the cache.
constexpr std::size_t kMostUnsent = std::size_t{128} << 10;

bool is_temporary(int problem) {
  return problem == EAGAIN || problem == EWOULDBLOCK || problem == EINTR || problem == ENOBUFS ||
         problem == ENOMEM;
}

}  // namespace

// --- the socket of the SSL object ----------------------------------------------------------------

struct Socket {
  static TlsStream& stream_of(BIO* bio) { return *static_cast<TlsStream*>(BIO_get_data(bio)); }

  /// Takes everything, so that no call of OpenSSL is left half done.
  static int write(BIO* bio, const char* data, int bytes) {
    TlsStream& stream = stream_of(bio);
    const auto* const begin = reinterpret_cast<const std::byte*>(data);
    stream.out_.insert(stream.out_.end(), begin, begin + bytes);
    return bytes;
  }

  static int read(BIO* bio, char* into, int bytes) {
    TlsStream& stream = stream_of(bio);
    BIO_clear_retry_flags(bio);
    if (stream.fd_ < 0) return -1;
    const auto size = static_cast<std::size_t>(bytes);
    const ssize_t n =
        stream.wire_ == nullptr
            ? ::recv(stream.fd_, into, size, 0)
            : stream.wire_->receive(stream.fd_, {reinterpret_cast<std::byte*>(into), size});
    if (n == 0) stream.has_ended_ = true;
    if (n >= 0) return static_cast<int>(n);
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
      BIO_set_retry_read(bio);
    else
      stream.error_ = errno;
    return -1;
  }

  static long control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

  /// Made once, and kept until the process ends. Null: out of memory.
  static BIO_METHOD* method() {
    static BIO_METHOD* const made = [] {
      BIO_METHOD* const all = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "anyccl");
      if (all == nullptr) return all;
      BIO_meth_set_write(all, write);
      BIO_meth_set_read(all, read);
      BIO_meth_set_ctrl(all, control);
      return all;
    }();
    return made;
  }
};

TlsStream::~TlsStream() {
  OPENSSL_cleanse(key_.data(), key_.size());
}

TlsStream& TlsStream::of(SSL* ssl) {
  return *static_cast<TlsStream*>(SSL_get_app_data(ssl));
}

bool TlsStream::begin(SSL_CTX* context, Side side) {
  BIO_METHOD* const method = Socket::method();
  if (method == nullptr) return false;
  BIO* const bio = BIO_new(method);
  ssl_.reset(SSL_new(context));
  if (bio == nullptr || ssl_ == nullptr) return BIO_free(bio), false;
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_.get(), bio, bio);
  if (SSL_set_app_data(ssl_.get(), this) != 1) return false;
  if (side == Side::client)
    SSL_set_connect_state(ssl_.get());
  else
    SSL_set_accept_state(ssl_.get());
  return true;
}

// --- handshake -----------------------------------------------------------------------------------

short TlsStream::events() const {
  return unsent() > 0 ? POLLOUT : POLLIN;
}

Status TlsStream::shake_hands(int fd) {
  fd_ = fd;
  if (!is_ready_) {
    ERR_clear_error();
    const int result = SSL_do_handshake(ssl_.get());
    if (result == 1)
      ANYCCL_CHECK(check_key());
    else
      fail(result);
    is_ready_ = result == 1;
    if (is_ready_) OPENSSL_cleanse(key_.data(), key_.size());
  }
  const int problem = !flush(fd) ? errno : error_;
  if (error_ == EBADMSG)
    return error(Code::remote_error, "the TLS handshake failed: it sent {} ({})", problem_, why_);
  const bool is_closed = problem == EPIPE || problem == ECONNRESET || (has_ended_ && !is_ready_);
  if (!is_closed) return problem == 0 ? Status() : system_error(problem, "the TLS handshake");
  return error(Code::remote_error, "it closed the connection during the TLS handshake");
}

/// Checks that the peer has shown over TLS 1.3 that it has the key. OpenSSL sees to that, but it is
/// too important to be left to one function.
Status TlsStream::check_key() const {
  const bool has_key = SSL_session_reused(ssl_.get()) == 1;
  if (has_key && SSL_version(ssl_.get()) == TLS1_3_VERSION) return {};
  return error(Code::remote_error, "the TLS handshake did not use the key of this connection");
}

/// Notes why a call of OpenSSL with this result failed, unless it only wants more bytes, and sends
/// the peer the alert of a failed check.
void TlsStream::fail(int result) {
  const int why = SSL_get_error(ssl_.get(), result);
  if (why == SSL_ERROR_WANT_READ || error_ != 0 || has_ended_) return ERR_clear_error();
  if (why == SSL_ERROR_ZERO_RETURN) {
    has_ended_ = true;
    return;
  }
  const unsigned long code = ERR_peek_last_error();
  const int reason = ERR_GET_REASON(code);
  const char* const text = ERR_reason_error_string(code);
  if (text != nullptr) why_ = text;
  error_ = EBADMSG;
  problem_ = reason > SSL_AD_REASON_OFFSET
                 ? "the alert that what reached it failed the check of TLS"
                 : "data that failed the check of TLS";
  ERR_clear_error();
  static_cast<void>(flush(fd_));  // The alert, which tells the peer.
}

// --- receiving -----------------------------------------------------------------------------------

ssize_t TlsStream::read(int fd, std::span<const iovec> parts) {
  fd_ = fd;
  std::size_t got = 0;
  for (const iovec& part : parts) {
    for (std::size_t here = 0; here < part.iov_len;) {
      if (error_ != 0 || has_ended_) return got > 0 ? static_cast<ssize_t>(got) : no_bytes(0);
      // What has come is enough, unless a part of it is here already.
      if (got > 0 && !holds_unread()) return static_cast<ssize_t>(got);
      std::size_t n = 0;
      ERR_clear_error();
      const int result = SSL_read_ex(ssl_.get(), static_cast<std::byte*>(part.iov_base) + here,
                                     part.iov_len - here, &n);
      if (result != 1)
        return got > 0 ? (fail(result), static_cast<ssize_t>(got)) : no_bytes(result);
      here += n;
      got += n;
    }
  }
  return static_cast<ssize_t>(got);
}

/// After a call of OpenSSL, if it was one, that brought nothing.
ssize_t TlsStream::no_bytes(int result) {
  if (error_ == 0 && !has_ended_) fail(result);
  if (error_ == 0 && has_ended_) return 0;
  errno = error_ != 0 ? error_ : EAGAIN;
  return -1;
}

// --- sending -------------------------------------------------------------------------------------

bool TlsStream::flush(int fd) {
  while (unsent() > 0) {
    const std::span<const std::byte> rest = std::span(out_).subspan(sent_);
    const ssize_t n = wire_ == nullptr ? ::send(fd, rest.data(), rest.size(), MSG_NOSIGNAL)
                                       : wire_->send(fd, rest);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      if (!is_temporary(errno)) failed_ = errno;
      return failed_ == 0;
    }
    sent_ += static_cast<std::size_t>(n);
  }
  out_.clear();
  sent_ = 0;
  return true;
}

ssize_t TlsStream::write(int fd, std::span<const iovec> parts) {
  fd_ = fd;
  if (failed_ != 0) return errno = failed_, -1;
  std::size_t all = 0, taken = 0;
  for (const iovec& part : parts) all += part.iov_len;
  while (taken < all) {
    if (unsent() >= kMostUnsent) {
      if (!flush(fd) && taken == 0) return -1;
      if (unsent() >= kMostUnsent) break;
    }
    const std::span<const std::byte> record = next_record(parts, taken);
    if (!encrypt(record)) {
      if (taken == 0) return errno = EPIPE, -1;
      break;
    }
    taken += record.size();
  }
  // If that fails, the peer may have some of what was taken; the next call fails, too, and takes
  // nothing.
  if (!flush(fd) && taken == 0) return -1;
  if (taken > 0 || all == 0) return static_cast<ssize_t>(taken);
  errno = EAGAIN;
  return -1;
}

/// As much of `parts`, behind the first `skip` bytes, as goes into one record; copied if it lies in
/// several places.
std::span<const std::byte> TlsStream::next_record(std::span<const iovec> parts, std::size_t skip) {
  while (skip >= parts.front().iov_len) {
    skip -= parts.front().iov_len;
    parts = parts.subspan(1);
  }
  const std::span<const std::byte> first(static_cast<const std::byte*>(parts.front().iov_base),
                                         parts.front().iov_len);
  const std::span<const std::byte> rest = first.subspan(skip);
  if (rest.size() >= kRecord || parts.size() == 1)
    return rest.first(std::min(rest.size(), kRecord));
  if (gathered_ == nullptr) gathered_ = std::make_unique<std::array<std::byte, kRecord>>();
  std::size_t bytes = 0;
  for (const iovec& part : parts) {
    const std::size_t here = std::min(part.iov_len - skip, kRecord - bytes);
    if (here > 0)
      std::memcpy(gathered_->data() + bytes, static_cast<const std::byte*>(part.iov_base) + skip,
                  here);
    bytes += here;
    skip = 0;
  }
  return std::span(*gathered_).first(bytes);
}

/// Encrypts `bytes` as a record that waits in the buffer, with another key after each
/// `records_per_key_` records. False: the connection has failed.
bool TlsStream::encrypt(std::span<const std::byte> bytes) {
  if (error_ != 0) return false;
  // TCP's window does not matter here: a KeyUpdate is a record like others.
  if (++records_ > records_per_key_) {
    if (SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_NOT_REQUESTED) != 1) return false;
    records_ = 1;
  }
  std::size_t taken = 0;
  ERR_clear_error();
  const bool done = SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &taken) == 1;
  if (!done) ERR_clear_error();
  return done && taken == bytes.size();
}

void TlsStream::close(int fd) {
  fd_ = fd;
  if (error_ != 0) return;
  ERR_clear_error();
  static_cast<void>(SSL_shutdown(ssl_.get()));
  ERR_clear_error();
  static_cast<void>(flush(fd));
}

}  // namespace anyccl::tls
