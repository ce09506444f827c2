#include "platform/transport/sockets/outbox.hpp"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace anyccl::sockets {
namespace {

constexpr std::size_t kOnePiece = 512;

iovec part(const void* data, std::size_t bytes) {
  return {const_cast<void*>(data), bytes};
}

bool try_again(int problem) {
  return problem == EAGAIN || problem == EWOULDBLOCK || problem == ENOBUFS || problem == ENOMEM;
}

}  // namespace

bool Outbox::hold() {
  std::uint8_t free = 0;
  // Pairs with the release in release(). Fails only after abort().
  return state_.compare_exchange_strong(free, kHeld, std::memory_order_acquire,
                                        std::memory_order_relaxed);
}

void Outbox::release() {
  std::uint8_t held = kHeld;
  // If abort() came meanwhile it left the rest to us; acquire makes last_words_ visible.
  if (!state_.compare_exchange_strong(held, 0, std::memory_order_release,
                                      std::memory_order_acquire))
    begin_last_words();
}

void Outbox::abort() {
  // Release: a thread that finds the flag also sees last_words_. Acquire: pairs with release(), for
  // the queue.
  if (state_.fetch_or(kAborted, std::memory_order_acq_rel) == 0) begin_last_words();
}

void Outbox::begin_last_words() {
  left_.assign(queue_.begin() + static_cast<std::ptrdiff_t>(sent_), queue_.end());
  left_.insert(left_.end(), last_words_.begin(), last_words_.end());
  go_on_with_last_words();
}

bool Outbox::go_on_with_last_words() {
  iovec rest[] = {part(left_.data() + said_, left_.size() - said_)};
  said_ += write(rest);
  return broken_ || said_ == left_.size();
}

void Outbox::discard() {
  if (!hold()) return;
  broken_ = true;
  queue_.clear();
  sent_ = 0;
  release();
}

void Outbox::close() {
  ::shutdown(fd_, SHUT_WR);  // Fails only if the connection is gone, which is as good.
}

void Outbox::send(const FrameHeader& header, const std::byte* payload) {
  if (!hold()) return;
  iovec parts[] = {part(&header, sizeof header), part(payload, header.bytes)};
  const std::size_t sent = queued() > 0                ? 0
                           : header.bytes <= kOnePiece ? write_small(header, payload)
                                                       : write(parts);
  if (!broken_ && sent < sizeof header + header.bytes) queue(parts, sent);
  release();
}

bool Outbox::flush() {
  if (queued() == 0) return true;
  if (!hold()) return true;
  iovec rest[] = {part(queue_.data() + sent_, queued())};
  sent_ += write(rest);
  if (broken_ || queued() == 0) {
    queue_.clear();
    sent_ = 0;
  }
  const bool empty = queue_.empty();
  release();
  return empty;
}

/// A frame in one piece: copying it costs less than describing two to the kernel.
std::size_t Outbox::write_small(const FrameHeader& header, const std::byte* payload) {
  std::array<std::byte, sizeof header + kOnePiece> frame;
  std::memcpy(frame.data(), &header, sizeof header);
  if (header.bytes > 0) std::memcpy(frame.data() + sizeof header, payload, header.bytes);
  iovec whole[] = {part(frame.data(), sizeof header + header.bytes)};
  return write(whole);
}

/// How many bytes the socket took.
std::size_t Outbox::write(std::span<iovec> parts) {
  if (broken_) return 0;
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  for (;;) {
    const ssize_t n = parts.size() == 1
                          ? ::send(fd_, parts[0].iov_base, parts[0].iov_len, MSG_NOSIGNAL)
                          : ::sendmsg(fd_, &message, MSG_NOSIGNAL);
    if (n >= 0) return static_cast<std::size_t>(n);
    if (errno == EINTR) continue;
    // Why the peer is gone shows when its stream is read to the end.
    broken_ = !try_again(errno);
    return 0;
  }
}

void Outbox::queue(std::span<const iovec> parts, std::size_t skip) {
  for (const iovec& p : parts) {
    if (skip >= p.iov_len) {
      skip -= p.iov_len;
      continue;
    }
    const auto* data = static_cast<const std::byte*>(p.iov_base);
    queue_.insert(queue_.end(), data + skip, data + p.iov_len);
    skip = 0;
  }
}

}  // namespace anyccl::sockets
