#include "platform/link/outbox.hpp"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <optional>
#include <utility>

namespace anyccl::link {
namespace {

constexpr std::size_t kOnePiece = 512;

iovec part(const void* data, std::size_t bytes) {
  return {const_cast<void*>(data), bytes};
}

/// ETOOMANYREFS: too many descriptors of this user are on their way.
bool is_temporary(int problem) {
  return problem == EAGAIN || problem == EWOULDBLOCK || problem == ENOBUFS || problem == ENOMEM ||
         problem == ETOOMANYREFS;
}

}  // namespace

void Outbox::discard() {
  broken_ = true;
  queue_.clear();
  sent_ = 0;
  attached_.clear();
  overtaken_.clear();
  note_queued();
}

void Outbox::connect(int fd, SecureStream* secure) {
  secure_ = secure;
  fd_.store(fd, std::memory_order_relaxed);
  if (resend_ == nullptr) return;
  greeting_ = {.received = resend_->tell()};
  greeting_left_ = sizeof greeting_;
  is_greeted_ = false;
  greet();
}

void Outbox::disconnect() {
  secure_ = nullptr;
  fd_.store(-1, std::memory_order_relaxed);
  greeting_left_ = 0;
  is_greeted_ = true;
  note_queued();
}

/// Sends the rest of the greeting as far as the socket takes it.
void Outbox::greet() {
  const auto bytes = std::as_bytes(std::span(&greeting_, 1)).last(greeting_left_);
  iovec rest[] = {part(bytes.data(), bytes.size())};
  const std::size_t n = bytes.empty() ? 0 : write_now(rest, {});
  greeting_left_ -= std::min(n, greeting_left_);
  note_queued();
}

bool Outbox::resume(std::uint64_t received) {
  std::optional<std::vector<std::byte>> rest = resend_->take_rest(received);
  if (!rest) return false;
  rest->insert(rest->end(), queue_.begin() + static_cast<std::ptrdiff_t>(sent_), queue_.end());
  queue_ = std::move(*rest);
  sent_ = 0;
  is_ahead_ = false;
  is_greeted_ = true;
  note_queued();
  flush();
  return true;
}

void Outbox::close() {
  closed_ = true;
  if (secure_ != nullptr) secure_->close(fd());
  ::shutdown(fd(), SHUT_WR);  // Fails only if the connection is gone, which is as good.
}

void Outbox::send(const FrameHeader& header, const std::byte* payload) {
  send(header, payload, {});
}

void Outbox::send_ahead(const FrameHeader& header, const std::byte* payload) {
  goes_ahead_ = true;
  send(header, payload);
  goes_ahead_ = false;
}

bool Outbox::send(const FrameHeader& header, const std::byte* payload,
                  std::span<const int> descriptors) {
  if (!seals_ && chaos_ == nullptr) return transmit(header, payload, header.bytes, descriptors);
  if (chaos_ != nullptr && reorder(header, payload)) return true;
  return put(header, payload, descriptors);
}

/// With seals or chaos: sends it as it goes over the wire.
bool Outbox::put(const FrameHeader& header, const std::byte* payload,
                 std::span<const int> descriptors) {
  const SealedHeader seal =
      seals_ ? sealed(header, next_number_, payload) : SealedHeader{header, {}};
  const int copies = chaos_ == nullptr ? 1 : chaos_->roll_copies();
  for (int i = 0; i < copies; ++i) {
    const bool done = seals_ ? transmit(seal, payload, header.bytes, descriptors)
                             : transmit(header, payload, header.bytes, descriptors);
    if (!done && i == 0) return false;  // the next frame has its number
  }
  ++next_number_;
  return true;
}

/// `head`: a FrameHeader or a SealedHeader.
template <typename Head>
bool Outbox::transmit(const Head& head, const std::byte* payload, std::size_t bytes,
                      std::span<const int> descriptors) {
  if (std::exchange(is_ahead_, false) && descriptors.empty() && !goes_ahead_)
    return transmit_behind(head, payload, bytes), true;
  iovec parts[] = {part(&head, sizeof head), part(payload, bytes)};
  if (goes_ahead_ && !broken_) {
    is_ahead_ = queue_.empty();
    queue(parts, 0);
    note_queued();
    return true;
  }
  const bool is_small = descriptors.empty() && bytes <= kOnePiece;
  const std::size_t sent = !queue_.empty() ? 0
                           : is_small      ? write_small(head, payload, bytes)
                                           : write(parts, descriptors);
  if (broken_ || sent == sizeof head + bytes) return true;
  if (sent == 0 && !descriptors.empty() && !attach(descriptors)) return false;
  queue(parts, sent);
  note_queued();
  return true;
}

/// In one system call with what send_ahead() has queued.
template <typename Head>
void Outbox::transmit_behind(const Head& head, const std::byte* payload, std::size_t bytes) {
  const std::size_t ahead = queue_.size() - sent_;
  iovec parts[] = {part(queue_.data() + sent_, ahead), part(&head, sizeof head),
                   part(payload, bytes)};
  const std::size_t sent = write(parts);
  if (broken_) return;
  sent_ += std::min(sent, ahead);
  if (sent >= ahead) {
    queue_.clear();
    sent_ = 0;
  }
  queue(std::span(parts).subspan(1), sent - std::min(sent, ahead));
  note_queued();
}

/// For chaos: sends the frame that was kept before, behind this one if this is data; else it may
/// keep this one, if it is small data. Whether it has taken this one: if not, the caller sends it.
bool Outbox::reorder(const FrameHeader& header, const std::byte* payload) {
  if (header.type == kData && !overtaken_.empty()) {
    put(header, payload, {});
    release_overtaken();
    return true;
  }
  release_overtaken();
  if (header.type != kData || header.bytes > kSmall || !chaos_->is_overtaken()) return false;
  const auto head = std::as_bytes(std::span(&header, 1));
  overtaken_.assign(head.begin(), head.end());
  if (payload != nullptr) overtaken_.insert(overtaken_.end(), payload, payload + header.bytes);
  note_queued();
  return true;
}

void Outbox::release_overtaken() {
  if (overtaken_.empty()) return;
  const std::vector<std::byte> frame = std::exchange(overtaken_, {});
  note_queued();
  FrameHeader header;
  std::memcpy(&header, frame.data(), sizeof header);
  put(header, frame.data() + sizeof header, {});
}

bool Outbox::flush() {
  if (idle()) return true;
  if (greeting_left_ > 0) greet();
  release_overtaken();
  while (sent_ < queue_.size()) {
    const std::size_t n = write_queued();
    sent_ += n;
    if (n == 0) break;
  }
  is_ahead_ = false;
  if (broken_ || sent_ == queue_.size()) {
    queue_.clear();
    sent_ = 0;
    attached_.clear();
  }
  drop_sent();
  if (secure_ != nullptr && queue_.empty()) write_secure({});
  note_queued();
  return idle();
}

/// A queue that never becomes empty must not grow for ever.
void Outbox::drop_sent() {
  constexpr std::size_t kFrom = std::size_t{1} << 20;
  if (sent_ < kFrom) return;
  queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(sent_));
  for (Attached& attached : attached_) attached.at -= sent_;
  sent_ = 0;
}

/// Up to the next frame with descriptors, or from there on.
std::size_t Outbox::write_queued() {
  std::size_t end = queue_.size();
  std::vector<int> descriptors;
  if (!attached_.empty() && attached_.front().at == sent_) {
    for (const UniqueFd& fd : attached_.front().descriptors) descriptors.push_back(fd.get());
    if (attached_.size() > 1) end = std::next(attached_.begin())->at;
  } else if (!attached_.empty()) {
    end = attached_.front().at;
  }
  iovec rest[] = {part(queue_.data() + sent_, end - sent_)};
  const std::size_t n = write(rest, descriptors);
  if (n > 0 && !descriptors.empty()) attached_.pop_front();
  return n;
}

/// A frame in one piece: copying it costs less than describing two to the kernel.
template <typename Head>
std::size_t Outbox::write_small(const Head& head, const std::byte* payload, std::size_t bytes) {
  std::array<std::byte, sizeof head + kOnePiece> frame;
  std::memcpy(frame.data(), &head, sizeof head);
  if (bytes > 0) std::memcpy(frame.data() + sizeof head, payload, bytes);
  iovec whole[] = {part(frame.data(), sizeof head + bytes)};
  return write(whole);
}

/// How many bytes the socket took; with the first of them go the descriptors.
std::size_t Outbox::write(std::span<iovec> parts, std::span<const int> descriptors) {
  if (broken_ || fd() < 0 || !is_greeted_ || greeting_left_ > 0) return 0;
  const std::size_t n = write_now(parts, descriptors);
  if (resend_ == nullptr) return n;
  std::size_t left = n;
  for (const iovec& p : parts) {
    const std::size_t here = std::min(left, p.iov_len);
    resend_->note_sent({static_cast<const std::byte*>(p.iov_base), here});
    left -= here;
  }
  return n;
}

std::size_t Outbox::write_now(std::span<iovec> parts, std::span<const int> descriptors) {
  if (secure_ != nullptr) return write_secure(parts);
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  alignas(cmsghdr) char room[CMSG_SPACE(kMaxDescriptors * sizeof(int))] = {};
  if (!descriptors.empty()) {
    message.msg_control = room;
    message.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
    cmsghdr* item = CMSG_FIRSTHDR(&message);
    item->cmsg_level = SOL_SOCKET;
    item->cmsg_type = SCM_RIGHTS;
    item->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
    std::memcpy(CMSG_DATA(item), descriptors.data(), descriptors.size() * sizeof(int));
  }
  for (;;) {
    const ssize_t n = chaos_ != nullptr ? chaos_->write(fd(), message)
                      : parts.size() == 1 && descriptors.empty()
                          ? ::send(fd(), parts[0].iov_base, parts[0].iov_len, MSG_NOSIGNAL)
                          : ::sendmsg(fd(), &message, MSG_NOSIGNAL);
    if (n >= 0) return static_cast<std::size_t>(n);
    if (errno == EINTR) continue;
    if (!is_temporary(errno)) fail(errno);
    return 0;
  }
}

/// Loses the connection if another may replace it; else nothing more is sent. Why the peer is gone
/// shows when its stream is read to the end.
void Outbox::fail(int problem) {
  if (resend_ != nullptr && resend_->link.lose(problem)) return;
  broken_ = true;
  // The system says it once, to the side that writes or to the one that reads.
  problem_ = problem;
}

/// Writes to a connection that is encrypted. Some of what it takes may wait in the stream.
std::size_t Outbox::write_secure(std::span<const iovec> parts) {
  if (broken_) return 0;
  const ssize_t n = secure_->write(fd(), parts);
  if (n < 0 && !is_temporary(errno)) fail(errno);
  note_queued();
  return n < 0 ? 0 : static_cast<std::size_t>(n);
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

/// False: there is no descriptor left to keep them.
bool Outbox::attach(std::span<const int> descriptors) {
  Attached attached;
  attached.at = queue_.size();
  for (const int fd : descriptors) {
    attached.descriptors.emplace_back(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
    if (!attached.descriptors.back()) return false;
  }
  attached_.push_back(std::move(attached));
  return true;
}

}  // namespace anyccl::link
