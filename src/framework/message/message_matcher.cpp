#include "framework/message/message_matcher.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "base/error.hpp"

namespace anyccl {

MessageMatcher::MessageMatcher(Rank me, const std::vector<Messages*>& route)
    : me_(me),
      route_(route),
      pairs_(route.size()),
      one_sided_(me, static_cast<int>(route.size()), open_) {}

MessageMatcher::Exchange& MessageMatcher::exchange(Rank other) {
  Pair& pair = pairs_[uindex(other)];
  if (pair.open != nullptr) return *pair.open;
  open_pairs_.push_back(other);
  if (spare_exchanges_.empty()) return *(pair.open = std::make_unique<Exchange>());
  pair.open = std::move(spare_exchanges_.back());
  spare_exchanges_.pop_back();
  return *pair.open;
}

/// Its memory is kept for another one. A few stay: ranks that exchange messages soon do so again.
void MessageMatcher::end_if_over(Rank other) {
  constexpr std::size_t kFew = 8;
  Pair& pair = pairs_[uindex(other)];
  if (open_pairs_.size() <= kFew || pair.open == nullptr || !pair.open->is_over()) return;
  pair.open->answered = 0;
  spare_exchanges_.push_back(std::move(pair.open));
  std::erase(open_pairs_, other);
}

std::shared_ptr<MessageRequest> MessageMatcher::make(const Call& call, Gate gate) {
  std::shared_ptr<MessageRequest> request;
  if (!spare_.empty()) {
    request = std::move(spare_.back());
    spare_.pop_back();
  } else {
    request = std::make_shared<MessageRequest>();
  }
  request->begin(call, ++order_);
  request->set(gate);
  request->limit(call.timeout);
  return request;
}

bool MessageMatcher::does_at_once(const Call& call, std::uint32_t poll_budget) {
  constexpr std::size_t kMost = std::size_t{1} << 20;  // elements; what is longer is not short
  const std::size_t element = bytes_of(call.dtype), bytes = call.count * element;
  const bool sends = call.collective == Collective::send;
  if (uindex(call.root) >= pairs_.size() || route_[uindex(call.root)] == nullptr || element == 0 ||
      call.count > kMost || call.synchronous ||
      (bytes > 0 && (sends ? call.input == nullptr : call.output == nullptr)))
    return false;
  Messages& messages = *route_[uindex(call.root)];
  Pair& pair = pairs_[uindex(call.root)];
  const std::uint64_t digest = message_digest::of(call.tag, call.dtype);
  const bool done =
      sends ? !has_sends(pair) && messages.send_at_once(call.root, digest, {call.input, bytes})
            : is_next(pair) &&
                  messages.receive_at_once(call.root, digest, poll_budget, {call.output, bytes});
  if (done) ++(sends ? pair.sent : pair.received);
  return done;
}

std::shared_ptr<MessageRequest> MessageMatcher::add(const Call& call, Gate gate,
                                                    std::optional<AroundCall*> in_queues) {
  auto request = make(call, gate);
  if (in_queues) request->set_in_queues(*in_queues);
  if (call.tag == kPutTag) request->copy_bytes();
  if (call.root == kAnySource) {
    if (needs_peer(call.root)) ++open_;
    from_anyone_.push_back(request);
    return request;
  }
  Pair& pair = pairs_[uindex(call.root)];
  const bool sends = call.collective == Collective::send;
  if (call.root != me_) {
    if (sends ? goes_at_once(*request, pair) : comes_at_once(request, pair)) return request;
    ++open_;
  }
  Exchange& open = exchange(call.root);
  if (sends)
    (request->is_sent() ? open.unanswered : open.sends).push_back(request);
  else if (request != open.arriving)
    open.receives.push_back(request);
  return request;
}

bool MessageMatcher::goes_at_once(MessageRequest& send, Pair& pair) {
  if (has_sends(pair) || !send.is_open()) return false;
  advance_send(send, pair);
  return send.done();
}

/// With the next message of a pair. It gets its number when it starts, as answers go before it.
bool MessageMatcher::advance_send(MessageRequest& send, Pair& pair) {
  const bool starts = !send.has_started();
  const Rank to = send.call().root;
  if (starts) send.bind(*route_[uindex(to)], to, pair.sent + 1);
  const bool moved = send.advance();
  if (starts && send.has_started()) ++pair.sent;
  return moved;
}

/// Or what has come of it; then it is what is arriving.
bool MessageMatcher::comes_at_once(const std::shared_ptr<MessageRequest>& receive, Pair& pair) {
  const Rank from = receive->call().root;
  Envelope envelope;
  if (!receive->is_open() || !is_next(pair) ||
      !route_[uindex(from)]->peek(from, pair.received + 1, envelope) ||
      !message_digest::is_plain(envelope.digest) ||
      message_digest::tag_of(envelope.digest) != receive->call().tag)
    return false;
  receive->bind(*route_[uindex(from)], from, ++pair.received, envelope);
  receive->advance();
  if (!receive->done()) exchange(from).arriving = receive;
  return receive->done();
}

bool MessageMatcher::advance() {
  bool moved = meet_itself();
  moved = show_own() || moved;
  moved = one_sided_.advance() || moved;
  if (open_ == 0) return moved;
  if (looks_at_everyone()) {
    if (++turn_ >= pairs_.size()) turn_ = 0;  // no source is always the first
    for (std::size_t i = 0, r = turn_; i < pairs_.size(); ++i, ++r) {
      if (r == pairs_.size()) r = 0;
      moved = advance_with(Rank{static_cast<std::int32_t>(r)}) || moved;
    }
  } else {
    if (open_pairs_.size() > 1)
      std::rotate(open_pairs_.begin(), open_pairs_.begin() + 1, open_pairs_.end());
    for (std::size_t i = open_pairs_.size(); i-- > 0;)  // those that end leave the list
      moved = advance_with(open_pairs_[i]) || moved;
  }
  return one_sided_.advance() || moved;
}

bool MessageMatcher::advance_with(Rank other) {
  if (other == me_) return false;
  bool moved = advance_sends(pairs_[uindex(other)]);
  moved = advance_receives(other) || moved;
  end_if_over(other);
  return moved;
}

bool MessageMatcher::advance_sends(Pair& pair) {
  bool moved = false;
  while (has_sends(pair) && pair.open->sends.front()->is_open()) {
    Queue& sends = pair.open->sends;
    moved = advance_send(*sends.front(), pair) || moved;
    if (!sends.front()->is_sent()) break;
    if (sends.front()->done())
      --open_;
    else
      pair.open->unanswered.push_back(sends.front());
    sends.pop_front();
  }
  return moved;
}

bool MessageMatcher::advance_receives(Rank from) {
  const Pair& pair = pairs_[uindex(from)];
  const std::uint64_t received = pair.received;
  bool moved = false;
  do {
    if (pair.open == nullptr) continue;
    if (!advance_arriving(from, moved)) return show_kept(from) || moved;
    moved = deliver_early(from) || moved;
    moved = show_kept(from) || moved;
  } while (next_message(from));
  return moved || pair.received != received;
}

/// Whether nothing is arriving any more.
bool MessageMatcher::advance_arriving(Rank from, bool& moved) {
  Exchange& open = exchange(from);
  if (open.arriving == nullptr) return true;
  moved = open.arriving->advance() || moved;
  if (!open.arriving->done()) return false;
  const bool kept = !open.early.empty() && open.early.back().request == open.arriving;
  if (!kept) --open_;
  if (std::exchange(open.lands, false)) one_sided_.landed(from);
  open.arriving = nullptr;
  return true;
}

/// To receives that were called since they came.
bool MessageMatcher::deliver_early(Rank from) {
  Exchange& open = exchange(from);
  bool moved = false;
  std::vector<std::uint32_t> waiting;  // tags of those that have a receive and are not ready
  for (auto early = open.early.begin(); early != open.early.end();) {
    const std::uint32_t tag = early->request->call().tag;
    const Found found = find_receive(from, tag);
    if (found.queue == nullptr || std::count(waiting.begin(), waiting.end(), tag) > 0) {
      ++early;
      continue;
    }
    if (!(*found.at)->is_open() || !early->request->done() || !has_answered(from, *early)) {
      waiting.push_back(tag);
      ++early;
      continue;
    }
    const std::shared_ptr<MessageRequest> receive = take_receive(found);
    receive->set_source(from);
    copy_to_receive(*early->request, *receive);
    --open_;
    early = open.early.erase(early);
    moved = true;
  }
  return moved;
}

/// Whether there is one to go on with.
bool MessageMatcher::next_message(Rank from) {
  Pair& pair = pairs_[uindex(from)];
  const bool is_answer_due =
      pair.open != nullptr && (!pair.open->unanswered.empty() || sends_synchronously(pair));
  const bool wanted = (pair.open != nullptr && !pair.open->receives.empty()) ||
                      !from_anyone_.empty() || is_answer_due || is_probed(from);
  if (!wanted && !one_sided_.looks()) return false;
  Envelope envelope;
  if (!route_[uindex(from)]->peek(from, pair.received + 1, envelope)) return false;
  if (message_digest::is_answer(envelope.digest)) return take_answer(from, envelope);
  const std::uint32_t tag = message_digest::tag_of(envelope.digest);
  if (one_sided_.expects(from, tag)) return land(from, envelope);
  const Found found = find_receive(from, tag);
  if (found.queue == nullptr && show_next(from, envelope)) return true;
  const bool wants_behind = is_answer_due || is_probed(from) || one_sided_.must_clear_way(from);
  if (found.queue == nullptr && !wanted && !wants_behind)
    return false;  // it stays with the transport
  const bool is_open = found.queue != nullptr && (*found.at)->is_open();
  if (found.queue != nullptr && !is_open && !wants_behind) return false;
  if (!is_open || has_kept_message(pair, tag) || !answer_next(from, envelope)) {
    keep_early(from, envelope);
    return pair.open != nullptr && pair.open->arriving != nullptr;
  }
  const std::shared_ptr<MessageRequest> receive = take_receive(found);
  receive->bind(*route_[uindex(from)], from, ++pair.received, envelope);
  exchange(from).arriving = receive;
  return true;
}

bool MessageMatcher::meet_itself() {
  if (!has_sends(pairs_[uindex(me_)])) return false;
  Exchange& own = exchange(me_);
  bool moved = false;
  for (auto send = own.sends.begin(); send != own.sends.end();) {
    const Found found = find_receive(me_, (*send)->call().tag);
    if (found.queue == nullptr) {
      ++send;
      continue;
    }
    if (!(*send)->is_open() || !(*found.at)->is_open()) break;
    if (needs_peer((*found.at)->call().root)) --open_;
    const std::shared_ptr<MessageRequest> receive = take_receive(found);
    receive->set_source(me_);
    copy_to_receive(**send, *receive);
    (*send)->complete(receive->status());
    send = own.sends.erase(send);
    moved = true;
  }
  end_if_over(me_);
  return moved;
}

bool MessageMatcher::will_meet_itself() const {
  if (!has_sends(pairs_[uindex(me_)])) return false;
  const Exchange& own = *pairs_[uindex(me_)].open;
  return std::any_of(own.sends.begin(), own.sends.end(), [&](const auto& send) {
    const auto fits = [&](const auto& receive) { return receive->call().tag == send->call().tag; };
    return std::any_of(own.receives.begin(), own.receives.end(), fits) ||
           std::any_of(from_anyone_.begin(), from_anyone_.end(), fits);
  });
}

bool MessageMatcher::has_only_receives() const {
  return std::all_of(open_pairs_.begin(), open_pairs_.end(), [&](Rank other) {
    const Exchange* const open = pairs_[uindex(other)].open.get();
    return open == nullptr || (open->sends.empty() && open->unanswered.empty() &&
                               open->arriving == nullptr && open->early.empty());
  });
}

/// The receive that was called first, of those that a message of `from` with `tag` fits.
MessageMatcher::Found MessageMatcher::find_receive(Rank from, std::uint32_t tag) {
  Found first;
  Exchange* const open = pairs_[uindex(from)].open.get();
  for (Queue* queue : {open == nullptr ? nullptr : &open->receives, &from_anyone_}) {
    if (queue == nullptr) continue;
    const auto fits = [&](const auto& receive) { return receive->call().tag == tag; };
    const auto at = std::find_if(queue->begin(), queue->end(), fits);
    if (at != queue->end() && (first.queue == nullptr || (*at)->order() < (*first.at)->order()))
      first = {queue, at};
  }
  return first;
}

std::shared_ptr<MessageRequest> MessageMatcher::take_receive(Found found) {
  std::shared_ptr<MessageRequest> receive = std::move(*found.at);
  found.queue->erase(found.at);
  return receive;
}

namespace {

/// The first open one, and those that something waits for: tags let them overtake each other.
template <typename Queue>
void append_waiting(const Queue& queue, std::vector<std::shared_ptr<Operation>>& operations) {
  bool is_first = true;
  for (const auto& request : queue) {
    if (!request->is_open()) continue;
    if (std::exchange(is_first, false) || request->is_awaited()) operations.push_back(request);
  }
}

template <typename Queue>
bool any_awaited(const Queue& queue) {
  return std::any_of(queue.begin(), queue.end(),
                     [](const auto& request) { return request->is_awaited(); });
}

}  // namespace

std::vector<std::shared_ptr<Operation>> MessageMatcher::waiting() const {
  std::vector<std::shared_ptr<Operation>> operations;
  std::vector<Rank> others = open_pairs_;
  std::sort(others.begin(), others.end());
  for (const Rank other : others) {
    const Exchange& open = *pairs_[uindex(other)].open;
    const bool early = !open.early.empty() && open.early.back().request == open.arriving;
    if (open.arriving != nullptr && (!early || !open.receives.empty()))
      operations.push_back(open.arriving);
    append_waiting(open.receives, operations);
    append_waiting(open.sends, operations);
    if (!open.unanswered.empty()) operations.push_back(open.unanswered.front());
  }
  append_waiting(from_anyone_, operations);
  operations.insert(operations.end(), probes_.begin(), probes_.end());
  one_sided_.append_waiting(operations);
  return operations;
}

std::optional<Rank> MessageMatcher::awaited_sender() const {
  for (const Rank other : open_pairs_)
    if (any_awaited(pairs_[uindex(other)].open->receives)) return other;
  if (any_awaited(from_anyone_)) return kAnySource;
  return std::nullopt;
}

std::shared_ptr<MessageRequest> MessageMatcher::late() const {
  const auto is_late = [](const auto& request) { return request->is_late(); };
  const auto in = [&](const Queue& queue) -> std::shared_ptr<MessageRequest> {
    const auto found = std::find_if(queue.begin(), queue.end(), is_late);
    return found == queue.end() ? nullptr : *found;
  };
  for (const Rank other : open_pairs_) {
    const Exchange& open = *pairs_[uindex(other)].open;
    if (open.arriving != nullptr && open.arriving->is_late()) return open.arriving;
    for (const Queue* queue : {&open.receives, &open.sends, &open.unanswered})
      if (auto found = in(*queue)) return found;
  }
  return in(from_anyone_);
}

void MessageMatcher::end(const Status& why) {
  for (const Rank other : std::exchange(open_pairs_, {})) {
    const std::unique_ptr<Exchange> open = std::move(pairs_[uindex(other)].open);
    if (open->arriving != nullptr) open->arriving->complete(why);
    for (const Queue* queue : {&open->receives, &open->sends, &open->unanswered})
      for (const auto& request : *queue) request->complete(why);
  }
  for (const auto& request : from_anyone_) request->complete(why);
  from_anyone_.clear();
  for (const auto& probe : probes_) probe->complete(why);
  probes_.clear();
  one_sided_.end(why);
  open_ = 0;
}

void MessageMatcher::end_own(const Status& why) {
  one_sided_.end_own(why);
  const auto end = [&](Queue& queue) {
    for (const auto& request : queue) request->complete(why);
    queue.clear();
  };
  if (pairs_.size() == 1) end(from_anyone_);
  if (pairs_[uindex(me_)].open == nullptr) return;
  end(exchange(me_).receives);
  end(exchange(me_).sends);
  end_if_over(me_);
}

}  // namespace anyccl
