#include "framework/message/message_request.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace anyccl {
namespace {

/// The most bytes of a lent message that are copied at a time: some 10 ms, after which others get
/// their turn.
constexpr std::size_t kLentPart = std::size_t{64} << 20;

}  // namespace

void MessageRequest::begin(const Call& call, std::uint64_t order) {
  restart();
  set_kind(call.tag << 8 ^ static_cast<std::uint32_t>(call.dtype) ^
           static_cast<std::uint32_t>(call.root) << 16 ^
           static_cast<std::uint32_t>(call.collective) << 28);
  call_ = call;
  messages_ = nullptr;
  around_ = nullptr;
  in_queues_ = false;
  order_ = order;
  total_ = call.count * bytes_of(call.dtype);
  done_ = 0;
  fragments_ = 0;
  sent_ = false;
  answered_ = !call.synchronous;
}

void MessageRequest::bind(Messages& messages, Rank peer, std::uint64_t number,
                          const Envelope& envelope) {
  messages_ = &messages;
  call_.root = peer;
  message_ = number;
  if (call_.collective == Collective::recv)
    call_.synchronous = message_digest::is_synchronous(envelope.digest);
  lent_ = envelope.lent;
  most_ = lent_ ? kLentPart : messages.fragment_bytes();
}

bool MessageRequest::advance() {
  if (messages_ == nullptr) return false;
  bool moved = false;
  while (!done()) {
    const bool sends = call_.collective == Collective::send;
    const bool over = fragments_ > 0 && done_ == total_;  // an empty message is one empty fragment
    if (over && (!sends || messages_->settled(call_.root))) {
      sent_ = sends;
      if (sends && !answered_) return moved;
      if (sends)
        complete({});
      else
        end_receive();
      return true;
    }
    if (over || !(sends ? send_fragment() : receive_fragment())) return moved;
    ++fragments_;
    moved = true;
    if (lent_ && done_ < total_) return true;
  }
  return moved;
}

std::string MessageRequest::what() const {
  if (call_.tag == kPutTag || call_.tag == kPutBytesTag)
    return fmt::format("a put or signal of {} bytes", total_);
  const std::string tag =
      call_.tag > ANYCCL_MAX_TAG ? " of the library" : fmt::format(" with tag {}", call_.tag);
  return fmt::format("a {} of {} {}{}", call_.collective == Collective::send ? "send" : "receive",
                     call_.count, name_of(call_.dtype), tag);
}

void MessageRequest::take_answer() {
  answered_ = true;
  if (sent_) complete({});
}

Fragment MessageRequest::fragment() const {
  return {.peer = call_.root,
          .digest = digest(),
          .message = message_,
          .number = lent_ ? 0 : fragments_,
          .bytes = in_queues_ ? 0 : std::min(total_ - done_, most_),
          .total = total_};
}

bool MessageRequest::send_fragment() {
  const Fragment out = fragment();
  const Messages::Sent sent = messages_->send(out, call_.input + done_);
  if (sent == Messages::Sent::busy) return false;
  done_ += sent == Messages::Sent::lent || in_queues_ ? total_ : out.bytes;
  return true;
}

bool MessageRequest::receive_fragment() {
  const Fragment in = fragment();
  if (!messages_->receive(in, done_, call_.output + done_)) return false;
  done_ += in_queues_ ? total_ : in.bytes;
  return true;
}

}  // namespace anyccl
