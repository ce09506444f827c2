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

/// Before `message` of that rank goes to its receive. False if it wants an answer that cannot go
/// yet, or has not left: when the receive is complete nobody may be here to see to it.
bool MessageMatcher::answer(Rank to, std::uint32_t digest, std::uint64_t message) {
  if (!MessageRequest::is_synchronous(digest)) return true;
  Pair& pair = pairs_[uindex(to)];
  Messages& messages = *route_[uindex(to)];
  if (pair.answered != message) {
    if (!pair.sends.empty() && pair.sends.front()->has_started()) return false;
    const std::byte nothing{};
    Fragment out;
    out.peer = to;
    out.digest = MessageRequest::answer_digest(message);
    out.message = pair.sent + 1;
    if (messages.send(out, &nothing) == Messages::Sent::busy) return false;
    ++pair.sent;
    pair.answered = message;
  }
  return messages.settled(to);
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
