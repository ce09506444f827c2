#include "framework/message/message_request.hpp"

#include <algorithm>

#include "platform/reduce/copy.hpp"

namespace anyccl {
namespace {

/// Of a lent message, at a time: some 10 ms, after which others get their turn.
constexpr std::size_t kLentPart = std::size_t{64} << 20;

}  // namespace

void MessageRequest::begin(const Call& call, std::uint64_t order) {
  restart();
  call_ = call;
  transport_ = nullptr;
  order_ = order;
  total_ = call.count * bytes_of(call.dtype);
  done_ = 0;
  fragments_ = 0;
}

void MessageRequest::bind(Transport& transport, Rank peer, std::uint64_t number, bool whole) {
  transport_ = &transport;
  call_.root = peer;
  message_ = number;
  most_ = whole ? total_ : transport.fragment_bytes();
  lent_ = whole;
}

bool MessageRequest::advance() {
  if (transport_ == nullptr) return false;
  bool moved = false;
  while (!done()) {
    const bool sends = call_.collective == Collective::send;
    const bool over = fragments_ > 0 && done_ == total_;  // an empty message is one empty fragment
    if (over && sends && transport_->state(call_.root) == PeerState::dead)
      return moved;  // it may not have come
    if (over && (!sends || transport_->settled(call_.root))) {
      complete({});
      return true;
    }
    if (over || !(sends ? send_fragment() : receive_fragment())) return moved;
    ++fragments_;
    moved = true;
    if (lent_ && done_ < total_) return true;
  }
  return moved;
}

bool MessageRequest::send_fragment() {
  if (transport_->state(call_.root) != PeerState::present) return false;  // it would go nowhere
  ReaderOf reader{static_cast<std::uint16_t>(call_.root), 0, 0, total_};
  Outgoing out;
  out.context = Context::point_to_point;
  out.operation = message_;
  out.number = fragments_;
  out.digest = digest();
  out.bytes = out.total = total_;
  out.sized = true;
  out.readers = {&reader, 1};
  if (fragments_ == 0 && transport_->lend_message(out, call_.input)) {
    done_ = total_;
    return true;
  }
  out.bytes = reader.bytes = std::min(total_ - done_, most_);
  auto offered = transport_->offer(out, call_.input + done_, false);
  if (offered == Transport::Offered::busy) return false;
  if (offered == Transport::Offered::refused) {
    std::byte* const room = transport_->reserve(out);
    if (room == nullptr) return false;
    copy_bytes(room, call_.input + done_, reader.bytes);
    transport_->publish(out);
  }
  done_ += reader.bytes;
  return true;
}

bool MessageRequest::receive_fragment() {
  Incoming in;
  in.context = Context::point_to_point;
  in.operation = message_;
  in.number = lent_ ? 0 : fragments_;
  in.digest = digest();
  in.rank = static_cast<std::uint16_t>(call_.root);
  in.offset = lent_ ? done_ : 0;
  in.bytes = std::min(total_ - done_, lent_ ? kLentPart : most_);
  in.whole = lent_ ? total_ : in.bytes;
  in.total = total_;
  in.sized = true;
  in.into = call_.output + done_;
  const std::byte* part = transport_->poll(in);
  if (part == nullptr) return false;
  if (part != in.into) copy_bytes(in.into, part, in.bytes);
  // A sender that gives up says so before its memory is its caller's again.
  if (lent_ && !transport_->check().ok()) return false;
  done_ += in.bytes;
  if (!lent_ || done_ == total_) transport_->consumed(in);
  return true;
}

}  // namespace anyccl
