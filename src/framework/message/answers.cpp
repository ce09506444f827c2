// Synchronous messages: a receiver answers them, a sender waits for that.

#include <algorithm>
#include <cstddef>

#include "framework/message/message_matcher.hpp"

namespace anyccl {

/// Whether the message that is being sent may be answered before it is sent.
bool MessageMatcher::sends_synchronously(const Pair& pair) {
  return !pair.sends.empty() && pair.sends.front()->has_started() &&
         pair.sends.front()->call().synchronous;
}

/// A kept message of the same tag goes to a receive first.
bool MessageMatcher::is_behind_kept(const Pair& pair, std::uint32_t digest) {
  const std::uint32_t tag = MessageRequest::tag_of(digest);
  return std::any_of(pair.early.begin(), pair.early.end(),
                     [&](const Early& early) { return early.request->call().tag == tag; });
}

/// That `message` of that rank has met its receive. False: it cannot be said yet.
bool MessageMatcher::answer(Rank to, std::uint64_t message) {
  Pair& pair = pairs_[uindex(to)];
  if (!pair.sends.empty() && pair.sends.front()->has_started()) return false;
  const std::byte nothing{};
  Fragment out;
  out.peer = to;
  out.digest = MessageRequest::answer_digest(message);
  out.message = pair.sent + 1;
  if (route_[uindex(to)]->send(out, &nothing) == Messages::Sent::busy) return false;
  ++pair.sent;
  pair.answered = message;
  return true;
}

/// Of the next message, which its receive gets: whether it has all the answer it wants. The answer
/// must have left: when the receive is complete nobody may be here to see to it.
bool MessageMatcher::answer_next(Rank from, const Envelope& envelope) {
  if (!MessageRequest::is_synchronous(envelope.digest)) return true;
  return answer(from, pairs_[uindex(from)].received + 1) && route_[uindex(from)]->settled(from);
}

/// The same of a kept message.
bool MessageMatcher::has_answered(Rank from, Early& early) {
  if (!MessageRequest::is_synchronous(early.request->digest())) return true;
  if (!early.answered) early.answered = answer(from, early.request->number());
  return early.answered && route_[uindex(from)]->settled(from);
}

/// Of a message that this rank sent. True if there may be more to read.
bool MessageMatcher::take_answer(Rank from, const Envelope& envelope) {
  Pair& pair = pairs_[uindex(from)];
  std::byte nothing{};
  Fragment in;
  in.peer = from;
  in.digest = envelope.digest;
  in.message = pair.received + 1;
  if (!route_[uindex(from)]->receive(in, 0, &nothing)) return false;
  ++pair.received;
  const auto sent =
      std::find_if(pair.unanswered.begin(), pair.unanswered.end(),
                   [&](const auto& request) { return request->is_answered_by(envelope.digest); });
  if (sent != pair.unanswered.end()) {
    (*sent)->take_answer();
    pair.unanswered.erase(sent);
    --open_;
  } else if (sends_synchronously(pair) && pair.sends.front()->is_answered_by(envelope.digest)) {
    pair.sends.front()->take_answer();
  }
  return true;
}

}  // namespace anyccl
