#include "platform/transport/sockets/inbox.hpp"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.hpp"

namespace anyccl::sockets {
namespace {

// Every peer may send this much unasked for, however much the others have sent.
constexpr std::size_t kEarlyPerPeer = std::size_t{16} << 20;

// Payloads from this size are read straight into their place: reading the header alone first costs
// one more system call, which is cheaper than copying this much.
constexpr std::size_t kDirect = 8192;

bool same_call(const FrameHeader& header, const Wanted& in) {
  return header.digest == in.digest;
}

bool same_size(const FrameHeader& header, const Wanted& in) {
  const bool sized = (header.flags & kSized) != 0;
  return header.bytes == in.bytes && sized == in.sized && (!sized || header.total == in.total);
}

}  // namespace

Inbox::Inbox(int fd, Rank peer, Shared& shared)
    : fd_(fd), peer_(peer), shared_(shared), arrivals_(shared.early_bytes) {}

bool Inbox::peek(std::uint64_t message, Envelope& envelope) {
  const Key key{message, 0, true};
  const auto tell = [&](const FrameHeader& header) {
    envelope = {header.digest, header.total};
    return true;
  };
  if (const Arrival* arrival = arrivals_.empty() ? nullptr : arrivals_.find(key))
    return tell(arrival->header);
  for (;;) {
    unread_ = false;
    if (!in_frame_ && !next_header(nullptr)) return false;
    // Its payload stays where it is: whoever polls for it says where it goes.
    if (key_of(frame_) == key) return unread_ = true, tell(frame_);
    if (target_ == nullptr && !choose_target(nullptr)) return false;
    if (!receive_payload()) return false;
    finish_frame();
  }
}

const std::byte* Inbox::poll(const Wanted& in) {
  const Arrival* arrival = arrivals_.empty() ? nullptr : arrivals_.find(in.key);
  if (arrival == nullptr && read_frames(&in)) arrival = arrivals_.find(in.key);
  if (arrival == nullptr || !fits(in, arrival->header)) return nullptr;
  return arrival->data;
}

void Inbox::consumed(const Key& key) {
  shared_.pool.give(arrivals_.remove(key).buffer);
}

void Inbox::forget_old() {
  if (arrivals_.empty()) return;
  for (Arrival& old : arrivals_.remove_before(shared_.oldest))
    shared_.pool.give(std::move(old.buffer));
}

const CallRecord* Inbox::call(std::uint64_t sequence) const {
  const CallRecord& record = calls_[sequence % kCallHistory];
  return record.sequence == sequence ? &record : nullptr;
}

/// Whether the frame of `in` was completed. Without `in`: reads until nothing is left or there is
/// no room.
bool Inbox::read_frames(const Wanted* wanted) {
  for (;;) {
    unread_ = false;
    if (!in_frame_ && !next_header(wanted)) return false;
    if (target_ == nullptr && !choose_target(wanted)) return false;
    if (!receive_payload()) return false;
    const bool found = wanted != nullptr && key_of(frame_) == wanted->key;
    finish_frame();
    if (found) {
      unread_ = staged() > 0;
      return true;
    }
  }
}

bool Inbox::next_header(const Wanted* wanted) {
  const bool direct = wanted != nullptr && wanted->bytes >= kDirect;
  for (;;) {
    while (staged() < sizeof(FrameHeader))
      if (!fill(direct ? sizeof(FrameHeader) : staging_.size())) return false;
    FrameHeader header;
    std::memcpy(&header, staging_.data() + begin_, sizeof header);
    if (const char* what = goodbye_ ? "data after its goodbye" : problem_of(header)) {
      malformed(what);
      return false;
    }
    if (header.type == kData) {
      begin_ += sizeof header;
      frame_ = header;
      in_frame_ = true;
      received_ = 0;
      return true;
    }
    while (staged() < sizeof header + header.bytes)
      if (!fill(staging_.size())) return false;
    if (!handle_control(header)) return false;
  }
}

/// The frame lies whole in the staging buffer. False: nothing more is to be read.
bool Inbox::handle_control(const FrameHeader& header) {
  const std::byte* payload = staging_.data() + begin_ + sizeof header;
  begin_ += sizeof header + header.bytes;
  switch (header.type) {
    case kCall: {
      CallRecord record;
      std::memcpy(&record, payload, sizeof record);
      calls_[record.sequence % kCallHistory] = record;
      return true;
    }
    case kGoodbye:
      goodbye_ = true;
      state_ = PeerState::left;
      return true;
    default:
      shared_.note(received_abort(peer_, payload, header.bytes));
      ended_ = true;
      return false;
  }
}

/// Where the payload of frame_ goes. False if there is no room for it yet.
bool Inbox::choose_target(const Wanted* wanted) {
  const bool match = wanted != nullptr && key_of(frame_) == wanted->key;
  if (match && wanted->into != nullptr && same_call(frame_, *wanted) &&
      same_size(frame_, *wanted)) {
    target_ = wanted->into;
    return true;
  }
  const bool room = arrivals_.bytes() < kEarlyPerPeer || shared_.early_bytes < shared_.early_limit;
  if (!match && !room) return false;
  buffer_ = shared_.pool.take(frame_.bytes);
  target_ = buffer_.data();
  if (target_ != nullptr) return true;
  shared_.note(error(Code::system_error, "rank {} has no memory for {} bytes from rank {}",
                     index(shared_.me), frame_.bytes, index(peer_)));
  return false;
}

bool Inbox::receive_payload() {
  const std::size_t bytes = frame_.bytes;
  const std::size_t here = std::min(bytes - received_, staged());
  if (here > 0) {
    std::memcpy(target_ + received_, staging_.data() + begin_, here);
    begin_ += here;
    received_ += here;
  }
  while (received_ < bytes) {
    // The staging buffer is empty now. The next header comes along, which saves a call per frame.
    begin_ = end_ = 0;
    const std::size_t left = bytes - received_;
    iovec parts[] = {{target_ + received_, left}, {staging_.data(), sizeof(FrameHeader)}};
    const ssize_t n = ::readv(fd_, parts, 2);
    if (!arrived(n)) return false;
    const auto got = static_cast<std::size_t>(n);
    received_ += std::min(got, left);
    end_ = got > left ? got - left : 0;
  }
  return true;
}

void Inbox::finish_frame() {
  in_frame_ = false;
  const std::byte* data = std::exchange(target_, nullptr);
  const Key key = key_of(frame_);
  if (!key.is_message && key.operation < shared_.oldest) {
    shared_.pool.give(std::move(buffer_));
    return;
  }
  if (!arrivals_.add({frame_, std::move(buffer_), data})) malformed("a publication twice");
  buffer_ = {};
}

/// Reads at most `most` bytes into the staging buffer. False if there are none.
bool Inbox::fill(std::size_t most) {
  if (ended_) return false;
  if (begin_ > 0) {
    std::memmove(staging_.data(), staging_.data() + begin_, staged());
    end_ -= begin_;
    begin_ = 0;
  }
  const ssize_t n = ::recv(fd_, staging_.data() + end_, std::min(most, staging_.size() - end_), 0);
  if (!arrived(n)) return false;
  end_ += static_cast<std::size_t>(n);
  return true;
}

/// Whether a read brought bytes; notices the end of the stream.
bool Inbox::arrived(ssize_t result) {
  if (result > 0) return true;
  if (result < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return false;
  ended_ = true;
  if (!goodbye_) state_ = PeerState::dead;
  return false;
}

void Inbox::malformed(const char* what) {
  shared_.note(
      error(Code::remote_error,
            "rank {} sent {} to rank {}; it runs another version of anyccl, or its memory or "
            "the connection is damaged",
            index(peer_), what, index(shared_.me)));
  begin_ = end_ = 0;
  ended_ = true;
  state_ = PeerState::dead;
}

/// Whether `header` announces what `in` wants; notes the problem if not.
bool Inbox::fits(const Wanted& in, const FrameHeader& header) {
  const char* const what = in.key.is_message ? "message" : "operation";
  if (!same_call(header, in)) {
    shared_.note(error(Code::invalid_usage, "rank {} is in a different call at {} {} than rank {}",
                       index(peer_), what, in.key.operation, index(shared_.me)),
                 !in.key.is_message);
    return false;
  }
  if (same_size(header, in)) return true;
  const auto size_of = [](bool sized, std::uint64_t total, std::size_t bytes) {
    return sized ? total : std::uint64_t{bytes};
  };
  shared_.note(
      error(Code::invalid_usage,
            "rank {} sends {} bytes where rank {} expects {} ({} {}): the two must agree",
            index(peer_), size_of((header.flags & kSized) != 0, header.total, header.bytes),
            index(shared_.me), size_of(in.sized, in.total, in.bytes), what, in.key.operation));
  return false;
}

bool Inbox::drain() {
  ended_ = true;
  in_frame_ = false;
  target_ = nullptr;
  unread_ = false;
  begin_ = end_ = 0;
  constexpr int kMost = 256;  // A peer that sends without end must not keep us.
  for (int i = 0; i < kMost; ++i) {
    const ssize_t n = ::recv(fd_, staging_.data(), staging_.size(), 0);
    if (n <= 0) return n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
  }
  return false;
}

}  // namespace anyccl::sockets
