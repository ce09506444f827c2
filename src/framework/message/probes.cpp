// Probes: they are shown messages that no receive wants yet, and take none.

#include <algorithm>

#include "framework/message/message_matcher.hpp"

namespace anyccl {

void MessageMatcher::add(std::shared_ptr<Probe> probe) {
  if (needs_peer(probe->source())) ++open_;
  probes_.push_back(std::move(probe));
}

void MessageMatcher::remove(const std::shared_ptr<Probe>& probe) {
  if (std::erase(probes_, probe) > 0 && needs_peer(probe->source())) --open_;
}

bool MessageMatcher::is_probed(Rank from) const {
  return std::any_of(probes_.begin(), probes_.end(),
                     [&](const auto& probe) { return probe->looks_at(from); });
}

bool MessageMatcher::show(const MessageFacts& message) {
  bool found = false;
  for (const auto& probe : probes_) {
    if (!probe->looks_at(message.source) || probe->tag() != message.tag) continue;
    probe->find(message);
    found = true;
  }
  return found;
}

/// How many receives that were called already fit a message of `from` with `tag`.
std::size_t MessageMatcher::count_receives(Rank from, std::uint32_t tag) const {
  const auto fits = [&](const auto& receive) { return receive->call().tag == tag; };
  const Exchange* const open = pairs_[uindex(from)].open.get();
  const auto of_pair = open == nullptr ? 0 : std::ranges::count_if(open->receives, fits);
  return static_cast<std::size_t>(of_pair + std::ranges::count_if(from_anyone_, fits));
}

/// The first kept message of each tag that no receive waits for.
bool MessageMatcher::show_kept(Rank from) {
  if (probes_.empty() || pairs_[uindex(from)].open == nullptr) return false;
  bool found = false;
  const Fifo<Early>& kept = pairs_[uindex(from)].open->early;
  for (auto early = kept.begin(); early != kept.end(); ++early) {
    const Call& call = early->request->call();
    const auto before = std::count_if(kept.begin(), early, [&](const Early& other) {
      return other.request->call().tag == call.tag;
    });
    if (static_cast<std::size_t>(before) >= count_receives(from, call.tag))
      found = show({from, call.tag, call.dtype, call.count}) || found;
  }
  return found;
}

/// Messages of this rank to itself.
bool MessageMatcher::show_own() {
  if (probes_.empty() || !has_sends(pairs_[uindex(me_)])) return false;
  bool found = false;
  for (const auto& send : pairs_[uindex(me_)].open->sends) {
    const Call& call = send->call();
    if (!send->is_open()) break;
    if (count_receives(me_, call.tag) == 0)
      found = show({me_, call.tag, call.dtype, call.count}) || found;
  }
  return found;
}

/// A message that has come and that no receive waits for.
bool MessageMatcher::show_next(Rank from, const Envelope& envelope) {
  const DType dtype = message_digest::dtype_of(envelope.digest);
  const std::size_t element = bytes_of(dtype);
  if (element == 0 || envelope.total % element != 0) return false;  // keep_early() reports it
  return show({from, message_digest::tag_of(envelope.digest), dtype, envelope.total / element});
}

}  // namespace anyccl
