// What a Reader does with its socket.

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.hpp"
#include "platform/link/reader.hpp"

namespace anyccl::link {
namespace {

// Descriptors that may have come before their notice is looked at.
constexpr std::size_t kMostKept = 1024;

}  // namespace

/// Reads at most `most` bytes into the staging buffer. False if there are none.
bool Reader::fill(std::size_t most) {
  if (ended_) return false;
  if (begin_ > 0) {
    std::memmove(staging_->data(), staging_->data() + begin_, staged());
    end_ -= begin_;
    begin_ = 0;
  }
  iovec part{staging_->data() + end_, std::min(most, staging_->size() - end_)};
  const ssize_t n = receive(&part, 1);
  if (!note_read(n)) return false;
  end_ += static_cast<std::size_t>(n);
  return true;
}

ssize_t Reader::receive(iovec* parts, std::size_t count) {
  if (resend_ != nullptr && greeting_bytes_ < sizeof greeting_)
    if (const ssize_t n = receive_greeting(); n <= 0) return n;
  return receive_bytes(parts, count);
}

/// What each connection begins with. Positive: it is there.
ssize_t Reader::receive_greeting() {
  const auto wait = [] { return errno = EAGAIN, ssize_t{-1}; };
  while (greeting_bytes_ < sizeof greeting_) {
    if (fd_ < 0) return wait();
    const auto left = std::as_writable_bytes(std::span(&greeting_, 1)).subspan(greeting_bytes_);
    iovec part{left.data(), left.size()};
    const ssize_t n = receive_bytes(&part, 1);
    if (n <= 0) return n;
    greeting_bytes_ += static_cast<std::size_t>(n);
  }
  if (greeting_.magic != Resend::Greeting::kMagic || !resend_->link.resume(greeting_.received))
    malformed("that it has received what it was not sent");
  return fd_ < 0 || ended_ ? wait() : 1;
}

ssize_t Reader::receive_bytes(iovec* parts, std::size_t count) {
  if (secure_ != nullptr) return secure_->read(fd_, {parts, count});
  if (chaos_ == nullptr) return receive_some(parts, count);
  return chaos_->read({parts, count}, [&] { return receive_some(parts, count); });
}

ssize_t Reader::receive_some(iovec* parts, std::size_t count) {
  if (!carries_descriptors_)
    return count == 1 ? ::recv(fd_, parts->iov_base, parts->iov_len, 0)
                      : ::readv(fd_, parts, static_cast<int>(count));
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = count;
  alignas(cmsghdr) char room[CMSG_SPACE(kMaxDescriptors * sizeof(int))];
  message.msg_control = room;
  message.msg_controllen = sizeof room;
  const ssize_t n = ::recvmsg(fd_, &message, MSG_CMSG_CLOEXEC);
  if (n > 0 && (message.msg_controllen > 0 || (message.msg_flags & MSG_CTRUNC) != 0))
    keep_descriptors(message);
  return n;
}

/// A read ends with the first piece that has descriptors, so they are all of one notice. Some are
/// missing where this process has no room for them.
void Reader::keep_descriptors(msghdr& message) {
  std::vector<UniqueFd> all;
  for (cmsghdr* item = CMSG_FIRSTHDR(&message); item != nullptr;
       item = CMSG_NXTHDR(&message, item)) {
    if (item->cmsg_level != SOL_SOCKET || item->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (item->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(item) + i * sizeof(int), sizeof fd);
      all.emplace_back(fd);
    }
  }
  descriptors_.push_back(std::move(all));
  if (descriptors_.size() > kMostKept) malformed("descriptors without notices");
}

/// Whether a read brought bytes; notices the end of the stream.
bool Reader::note_read(ssize_t result) {
  if (result > 0) return true;
  if (result < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return false;
  const int problem = result < 0 ? errno : 0;
  if (secure_ != nullptr && problem == EBADMSG) return damaged(secure_->problem()), false;
  if (resend_ != nullptr && resend_->link.lose(problem)) return false;
  problem_ = problem;
  end();
  return false;
}

void Reader::end() {
  ended_ = true;
  for (auto& [key, flow] : flows_) tell(flow);
}

/// After this nothing that the peer says is believed, in any context.
void Reader::malformed(const char* what) {
  for (auto& [key, flow] : flows_)
    if (flow.context != nullptr)
      flow.context->note(
          error(Code::remote_error,
                "rank {} sent {} to rank {}; it runs another version of anyccl, or its memory or "
                "the connection is damaged",
                index(flow.peer), what, index(flow.context->me)));
  begin_ = end_ = 0;
  end();
}

/// The frame that comes next has not come as it was sent: with Resend it comes once more, if that
/// helps.
void Reader::damaged(const char* what) {
  constexpr int kMost = 10;
  if (resend_ != nullptr) {
    damages_ = damaged_at_ == resend_->received() ? damages_ + 1 : 1;
    damaged_at_ = resend_->received();
    if (damages_ <= kMost && resend_->link.lose(EBADMSG)) return;
  }
  in_frame_ = false;
  target_ = nullptr;
  malformed(what);
}

bool Reader::drain() {
  ended_ = true;
  if (staging_ == nullptr) return true;
  in_frame_ = false;
  target_ = nullptr;
  buffer_ = {};
  unread_ = false;
  begin_ = end_ = 0;
  constexpr int kMost = 256;  // A peer that sends without end must not keep us.
  for (int i = 0; i < kMost; ++i) {
    const ssize_t n = ::recv(fd_, staging_->data(), staging_->size(), 0);
    if (n <= 0) return n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
  }
  return false;
}

}  // namespace anyccl::link
