#include "platform/transports/sockets/connections.hpp"

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include "base/error.hpp"

namespace anyccl::sockets {
namespace {

constexpr auto kLeaveTime = std::chrono::seconds(1);
/// A peer that waits reads at least every few milliseconds, if it gets a core.
constexpr auto kAbortTime = std::chrono::milliseconds(200);
/// A host that is there acknowledges within a few round trips.
constexpr auto kAnswerTime = std::chrono::milliseconds(50);
/// The longest sleep of a thread that nothing would wake.
constexpr auto kNap = std::chrono::milliseconds(1);
/// Operations.
constexpr std::uint64_t kForgetEvery = 64;
/// Limits of silence are seconds.
constexpr auto kSilenceLooks = std::chrono::milliseconds(100);

}  // namespace

void Connections::add(link::PeerChannel peer) {
  const std::uint32_t rank = uindex(peer.rank);
  ranks_.push_back(peer.rank);
  peer_of_.resize(rank + 1, nullptr);
  unopened_.resize(rank + 1);
  if (peer.channel != nullptr) {
    peers_.push_back(std::make_unique<Peer>(std::move(peer.channel)));
    peer_of_.back() = peers_.back().get();
    return;
  }
  if (connector_ == nullptr) {
    connector_ = peer.link->connector();
    connector_->watch(context_);
  }
  unopened_.back() = std::move(peer.link);
}

Peer& Connections::open_on_demand(std::uint32_t rank) {
  const Rank to{static_cast<std::int32_t>(rank)};
  const std::shared_ptr<link::Link> link = unopened_[rank];
  Result<std::unique_ptr<link::Channel>> channel = link->open(context_, to);
  if (!channel.ok())  // This communicator has ended there, and only looks once more.
    channel = std::make_shared<link::Link>(link->kind(), nullptr, to)->open(context_, to);
  unopened_[rank] = nullptr;
  {
    const std::lock_guard lock(abort_mutex_);
    peers_.push_back(std::make_unique<Peer>(*std::move(channel)));
    peer_of_[rank] = peers_.back().get();
    if (aborted_.load(std::memory_order_relaxed)) peers_.back()->channel->abort(why_);
  }
  link->use();
  return *peer_of_[rank];
}

/// Opens the channels of peers that have connected: what is wrong may come from them.
void Connections::open_attached() {
  if (connector_ == nullptr || connector_->attached() == attached_) return;
  attached_ = connector_->attached();
  for (const Rank rank : ranks_)
    if (const auto& link = unopened_[uindex(rank)]; link != nullptr && link->is_attached())
      open_on_demand(uindex(rank));
}

link::Channel* Connections::opened(Rank rank) const {
  const Peer* const known = peer_of_[uindex(rank)];
  return known == nullptr ? nullptr : known->channel.get();
}

std::size_t Connections::memory_bytes() {
  std::size_t sum = 0;
  for (auto& p : peers_) sum += p->channel->early_bytes();
  return sum;
}

// --- fast path -----------------------------------------------------------------------------------

void Connections::send(std::uint32_t to, const link::FrameHeader& header,
                       const std::byte* payload) {
  Peer& p = peer(to);
  if (unasked_ && (header.flags & link::kMessage) == 0) send_record(p, current_, true);
  note_queue(p, p.channel->send(header, payload));
}

/// Who leaves something in a queue flushes it.
void Connections::note_queue(Peer& to, bool is_empty) {
  if (to.queued || is_empty) return;
  to.queued = true;
  ++queues_;
}

bool Connections::has_room(const link::Key& key, std::span<const ReaderOf> readers) {
  flush();
  for (const ReaderOf& reader : readers) {
    if (channel(reader.rank).has_room(key, reader.bytes)) continue;
    note_queue(peer(reader.rank), channel(reader.rank).idle());
    note_stall();
    return false;
  }
  stalls_ = 0;
  return true;
}

void Connections::flush(Peer& to) {
  if (!to.queued || !to.channel->flush()) return;
  to.queued = false;
  --queues_;
}

bool Connections::flush_all() {
  for (std::size_t i = 0; i < peers_.size() && queues_ > 0; ++i) flush(*peers_[i]);
  return queues_ == 0;
}

/// Called each time this rank waits for a peer to read: see Link. Every 64th time in a row, reads
/// what all peers have sent.
void Connections::note_stall() {
  constexpr unsigned kPatience = 64;  // Reading unasked costs a copy later, so not at once.
  if (++stalls_ % kPatience == 0) pump_all();
}

bool Connections::settled() {
  if (flush()) return true;
  note_stall();
  return false;
}

void Connections::pump_all() {
  if (over()) return;
  for (auto& p : peers_) {
    p->channel->pump();
    note_queue(*p, p->channel->idle());
  }
}

void Connections::forget_before(std::uint64_t oldest) {
  if (oldest > context_->oldest.load(std::memory_order_relaxed))
    context_->oldest.store(oldest, std::memory_order_relaxed);
  // Looks at all that has come, of which a root that is behind has thousands: not in each
  // operation.
  if (oldest < forgotten_ + kForgetEvery) return;
  forgotten_ = oldest;
  if (context_->arrivals.load(std::memory_order_relaxed) > 0)
    for (auto& p : peers_) p->channel->forget_old();
}

void Connections::announce(const CallRecord& call, bool unasked) {
  current_ = call.sequence;
  unasked_ = unasked;
  calls_[call.sequence % kCallHistory] = call;
}

// --- slow path -----------------------------------------------------------------------------------

PeerState Connections::state(Rank rank) {
  link::Channel* const c = opened(rank);
  if (c == nullptr) return PeerState::present;  // as far as is known
  if (c->is_dead())
    return c->is_silent()             ? PeerState::silent
           : c->link().was_attached() ? PeerState::dead
                                      : PeerState::gone;
  return c->has_left() ? PeerState::left : PeerState::present;
}

std::string Connections::how_ended(Rank rank) {
  link::Channel* const c = opened(rank);
  return c == nullptr ? "" : c->how_ended();
}

std::uint64_t Connections::unread_by(Rank rank) const {
  const link::Channel* const c = opened(rank);
  return c == nullptr ? 0 : c->unread();
}

Status Connections::check() {
  // Pairs with the release in abort(): why_ is visible.
  if (aborted_.load(std::memory_order_acquire)) return why_;
  if (left_) return context_->problem();
  open_attached();
  pump_all();
  look_for_silence();
  for (auto& p : peers_) send_records(*p);
  flush_all();
  return context_->problem();
}

Status Connections::glance() {
  if (aborted_.load(std::memory_order_acquire)) return why_;  // as in check()
  if (!left_) {
    open_attached();
    pump_all();
  }
  return context_->problem();
}

void Connections::look_for_silence() {
  const auto now = std::chrono::steady_clock::now();
  if (now < next_look_) return;
  next_look_ = now + kSilenceLooks;
  for (auto& p : peers_) p->channel->look_for_silence();
}

/// Our record of the current call, and of those a peer has told us of: it is waiting in them.
void Connections::send_records(Peer& to) {
  send_record(to, current_);
  for (const std::uint64_t theirs : to.channel->call_sequences()) send_record(to, theirs);
}

/// Once for each call and peer, if we still have it. `ahead`: together with the next frame, which
/// follows.
void Connections::send_record(Peer& to, std::uint64_t sequence, bool ahead) {
  const std::size_t at = sequence % kCallHistory;
  const CallRecord& ours = calls_[at];
  if (sequence == 0 || ours.sequence != sequence || to.records_sent[at] == sequence) return;
  to.records_sent[at] = sequence;
  link::FrameHeader header;
  header.type = link::kCall;
  header.bytes = sizeof ours;
  std::array<std::byte, sizeof ours> payload;
  std::memcpy(payload.data(), &ours, sizeof ours);
  note_queue(to, ahead ? to.channel->send_ahead(header, payload.data())
                       : to.channel->send(header, payload.data()));
}

bool Connections::call_of(Rank rank, std::uint64_t sequence, CallRecord& record) {
  Peer* const p = rank == context_->me ? nullptr : peer_of_[uindex(rank)];
  if (p != nullptr && !over()) {
    p->channel->pump();
    send_record(*p, sequence);
    send_records(*p);
    flush(*p);
  }
  return known_call_of(rank, sequence, record);
}

bool Connections::known_call_of(Rank rank, std::uint64_t sequence, CallRecord& record) const {
  if (rank == context_->me) {
    const CallRecord& ours = calls_[sequence % kCallHistory];
    if (ours.sequence == sequence) record = ours;
    return ours.sequence == sequence;
  }
  link::Channel* const c = opened(rank);
  return c != nullptr && c->copy_call(sequence, record);
}

PeerCalls Connections::calls_of(Rank rank) const {
  link::Channel* const c = opened(rank);
  PeerCalls calls;
  if (c != nullptr) calls.entered = c->newest_call();
  return calls;
}

void Connections::append_events(std::vector<pollfd>& events) {
  for (auto& p : peers_) events.push_back(p->channel->poll_entry());
}

void Connections::sleep(std::chrono::nanoseconds most, std::span<const pollfd> others) {
  for (auto& p : peers_) {
    if (!p->channel->holds_unread()) continue;
    p->channel->pump();  // Bytes in the link's own buffer wake nobody up.
    return context_->end_sleep();
  }
  wait_for_events(most, others);
  context_->end_sleep();
}

void Connections::wait_for_events(std::chrono::nanoseconds most, std::span<const pollfd> others) {
  // Another communicator may have sent what this rank waits to see gone.
  const bool is_gone = std::any_of(peers_.begin(), peers_.end(),
                                   [](const auto& p) { return p->queued && p->channel->idle(); }) ||
                       (connector_ != nullptr && connector_->attached() != attached_);
  const std::optional<int> doorbell = context_->doorbell.listen();
  if (doorbell && !is_gone) {
    events_.assign(1, {*doorbell, POLLIN, 0});
    append_events(events_);
    events_.insert(events_.end(), others.begin(), others.end());
    const auto limit = *doorbell >= 0 ? most : std::min<std::chrono::nanoseconds>(most, kNap);
    const auto nanoseconds = std::max<std::int64_t>(limit.count(), 0);
    const timespec time{static_cast<time_t>(nanoseconds / 1'000'000'000),
                        static_cast<long>(nanoseconds % 1'000'000'000)};
    ::ppoll(events_.data(), events_.size(), &time, nullptr);  // Woken for nothing is harmless.
  }
  context_->doorbell.answer();
}

// --- the end -------------------------------------------------------------------------------------

void Connections::abort(const Status& why) {
  const std::lock_guard lock(abort_mutex_);
  if (aborted_.load(std::memory_order_relaxed)) return;
  why_ = why;
  for (auto& p : peers_) p->channel->abort(why);
  aborted_.store(true, std::memory_order_release);
}

/// Whoever connects later hears of it.
void Connections::end_unopened(link::FrameType type, std::span<const std::byte> payload) {
  link::FrameHeader last;
  last.type = type;
  last.context = context_->key;
  last.bytes = static_cast<std::uint32_t>(payload.size());
  for (const auto& link : unopened_)
    if (link != nullptr) link->end_unopened(last, payload.data());
}

/// A rank that nobody is connected with yet hears of an abort by a tree of all ranks, each of which
/// has a few neighbours: whoever hears of it tells its own.
void Connections::open_neighbours() {
  constexpr std::uint32_t kChildren = 8;
  const std::uint32_t me = uindex(context_->me), first = me * kChildren + 1;
  const auto open_if_unopened = [&](std::uint32_t rank) {
    if (rank < unopened_.size() && unopened_[rank] != nullptr) open_on_demand(rank);
  };
  if (me > 0) open_if_unopened((me - 1) / kChildren);
  for (std::uint32_t child = first; child < first + kChildren; ++child) open_if_unopened(child);
}

/// The links stay for ranks that carry on together, but for those whose peer does not take it.
void Connections::deliver_abort() {
  if (left_) return;
  open_neighbours();
  end_unopened(link::kAbort, link::abort_payload(why_));
  await_delivery(Deadline::in(kAbortTime), Delivered::own_kernel);
  await_delivery(Deadline::in(kAnswerTime));
  for (auto& p : peers_) p->channel->close_if_stuck();
}

void Connections::leave(Deadline deadline) {
  if (std::exchange(left_, true)) return;
  for (auto& p : peers_) p->channel->say_goodbye();
  if (!aborted_.load(std::memory_order_relaxed)) end_unopened(link::kGoodbye, {});
  await_delivery(std::clamp(deadline, Deadline::in(kAnswerTime), Deadline::in(kLeaveTime)));
  for (auto& p : peers_) p->channel->close_last();
}

/// Until peers' hosts have all that was sent: a process that ends with unread data resets its
/// connections and loses what is under way. Reads what arrives meanwhile, as a peer that is stuck
/// in sending, or fails, too, waits for that.
void Connections::await_delivery(Deadline deadline, Delivered to) {
  for (;;) {
    bool waiting = false;
    for (auto& p : peers_) waiting |= !p->channel->is_delivered(to);
    if (!waiting || deadline.passed()) break;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  flush();
}

}  // namespace anyccl::sockets
