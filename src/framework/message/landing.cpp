// MessageMatcher: the messages of one-sided operations.

#include "base/cpu.hpp"
#include "framework/message/message_matcher.hpp"

namespace anyccl {

std::shared_ptr<Operation> MessageMatcher::start(const OneSidedCall& call, Gate gate,
                                                 std::uint32_t poll_budget) {
  return call.what == OneSidedCall::What::wait ? wait_for(call, gate, poll_budget)
                                               : put(call, gate);
}

std::shared_ptr<Operation> MessageMatcher::put(const OneSidedCall& call, Gate gate) {
  one_sided_.count_sent(call.peer);
  if (call.peer == me_) return one_sided_.put_to_itself(call, gate);
  const PutMessage message(call, gate == Gate::closed);
  if (!message.is_followed()) return send(message.first(), gate);
  // The header may go before its stream comes to it: nothing passes the bytes that follow, and the
  // last message is done last.
  static_cast<void>(send(message.first(), Gate::open));
  return send(message.rest(), gate);
}

/// Sends the message, or queues it for advance(). Returns null if it is done at once, else the
/// request, which the matcher drives; the caller may drop it.
std::shared_ptr<Operation> MessageMatcher::send(const Call& call, Gate gate) {
  if (gate == Gate::open && does_at_once(call, 1)) return nullptr;
  std::shared_ptr<MessageRequest> request = add(call, gate);
  if (!request->done()) return request;
  recycle(std::move(request));
  return nullptr;
}

std::shared_ptr<Operation> MessageMatcher::wait_for(const OneSidedCall& call, Gate gate,
                                                    std::uint32_t poll_budget) {
  std::shared_ptr<ArrivalWait> wait = one_sided_.take_signals(call.awaited, gate);
  wait->advance();
  one_sided_.look(true);
  for (; !wait->done() && gate == Gate::open && poll_budget > 0; --poll_budget) {
    bool moved = false;
    for (const ArrivalWait::Count& count : wait->left())
      if (count.from != me_) moved = advance_receives(count.from) || moved;
    if (moved)
      wait->advance();
    else
      relax();
  }
  one_sided_.look(false);
  if (wait->done()) {
    one_sided_.recycle(std::move(wait));
    return nullptr;
  }
  one_sided_.add(wait);
  return wait;
}

/// A message that no receive gets. Whether there is something to go on with.
bool MessageMatcher::land(Rank from, const Envelope& envelope) {
  const std::span<std::byte> place = one_sided_.place_of_next(from, envelope);
  if (place.empty()) return false;
  Pair& pair = pairs_[uindex(from)];
  Messages& messages = *route_[uindex(from)];
  if (messages.receive_at_once(from, envelope.digest, 1, place)) {
    ++pair.received;
    one_sided_.landed(from);
    return true;
  }
  Call call;
  call.collective = Collective::recv;
  call.dtype = DType::u8;
  call.root = from;
  call.tag = message_digest::tag_of(envelope.digest);
  call.count = place.size();
  call.output = place.data();
  Exchange& open = exchange(from);
  open.arriving = make(call, Gate::open);
  open.arriving->bind(messages, from, ++pair.received, envelope);
  open.lands = true;
  ++open_;
  return true;
}

}  // namespace anyccl
