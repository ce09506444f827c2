// Synchronous messages: a receiver answers them, a sender waits for that.

#include <algorithm>
#include <cstddef>

#include "framework/message/message_matcher.hpp"

namespace anyccl {

/// Whether the message that is being sent may be answered before it is sent.
bool MessageMatcher::sends_synchronously(const Pair& pair) {
  if (!has_sends(pair)) return false;
  const MessageRequest& send = *pair.open->sends.front();
  return send.has_started() && send.call().synchronous;
}

/// A kept message of the same tag goes to a receive first.
bool MessageMatcher::has_kept_message(const Pair& pair, std::uint32_t tag) {
  return pair.open != nullptr &&
         std::any_of(pair.open->early.begin(), pair.open->early.end(),
                     [&](const Early& early) { return early.request->call().tag == tag; });
}

/// That `message` of that rank has met its receive. False: it cannot be said yet.
bool MessageMatcher::answer(Rank to, std::uint64_t message) {
  Pair& pair = pairs_[uindex(to)];
  if (has_sends(pair) && pair.open->sends.front()->has_started()) return false;
  const std::byte nothing{};
  Fragment out;
  out.peer = to;
  out.digest = message_digest::answer(message);
  out.message = pair.sent + 1;
  if (route_[uindex(to)]->send(out, &nothing) == Messages::Sent::busy) return false;
  ++pair.sent;
  exchange(to).answered = message;
  return true;
}

/// Whether the next message, which its receive gets, has all the answer it wants; answers it if it
/// can. The answer must have left: when the receive is complete nobody may be here to see to it.
bool MessageMatcher::answer_next(Rank from, const Envelope& envelope) {
  if (!message_digest::is_synchronous(envelope.digest)) return true;
  return answer(from, pairs_[uindex(from)].received + 1) && route_[uindex(from)]->settled(from);
}

/// Whether a kept message has all the answer it wants, as answer_next() has it.
bool MessageMatcher::has_answered(Rank from, Early& early) {
  if (!message_digest::is_synchronous(early.request->digest())) return true;
  if (!early.answered) early.answered = answer(from, early.request->number());
  return early.answered && route_[uindex(from)]->settled(from);
}

/// Takes the answer to a message that this rank sent. True if there may be more to read.
bool MessageMatcher::take_answer(Rank from, const Envelope& envelope) {
  Pair& pair = pairs_[uindex(from)];
  std::byte nothing{};
  Fragment in;
  in.peer = from;
  in.digest = envelope.digest;
  in.message = pair.received + 1;
  if (!route_[uindex(from)]->receive(in, 0, &nothing)) return false;
  ++pair.received;
  Exchange& open = exchange(from);
  const auto sent =
      std::find_if(open.unanswered.begin(), open.unanswered.end(),
                   [&](const auto& request) { return request->is_answered_by(envelope.digest); });
  if (sent != open.unanswered.end()) {
    (*sent)->take_answer();
    open.unanswered.erase(sent);
    --open_;
  } else if (sends_synchronously(pair) && open.sends.front()->is_answered_by(envelope.digest)) {
    open.sends.front()->take_answer();
  }
  return true;
}

}  // namespace anyccl
