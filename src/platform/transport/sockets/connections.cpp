#include "platform/transport/sockets/connections.hpp"

#include <unistd.h>

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

}  // namespace

Connections::Connections(Rank me, std::size_t early_bytes, UniqueFd doorbell)
    : doorbell_(std::move(doorbell)) {
  shared_.me = me;
  shared_.early_limit = early_bytes;
  events_.push_back({doorbell_.get(), POLLIN, 0});
}

void Connections::add(Rank rank, UniqueFd fd) {
  ranks_.push_back(rank);
  peers_.push_back(std::make_unique<Peer>(rank, std::move(fd), shared_, last_words_));
  peer_of_.resize(uindex(rank) + 1, nullptr);
  peer_of_.back() = peers_.back().get();
  events_.push_back({});
}

// --- fast path -----------------------------------------------------------------------------------

void Connections::send(Peer& to, const FrameHeader& header, const std::byte* payload) {
  to.out.send(header, payload);
  if (to.queued || to.out.idle()) return;
  to.queued = true;
  ++queues_;
}

bool Connections::has_room(std::span<const ReaderOf> readers) {
  if (queues_ == 0) return true;
  flush_all();
  for (const ReaderOf& reader : readers) {
    if (peer(reader.rank).out.room(reader.bytes)) continue;
    stalled();
    return false;
  }
  stalls_ = 0;
  return true;
}

void Connections::flush(Peer& to) {
  if (!to.queued) return;
  // A peer that has left may keep the connection open, but reads it no more.
  if (to.in.state() != PeerState::present) to.out.discard();
  if (!to.out.flush()) return;
  to.queued = false;
  --queues_;
}

bool Connections::flush_all() {
  for (std::size_t i = 0; i < peers_.size() && queues_ > 0; ++i) flush(*peers_[i]);
  return queues_ == 0;
}

/// Called each time this rank waits for a peer to read: see the top of this file.
void Connections::stalled() {
  constexpr unsigned kPatience = 64;  // Reading unasked costs a copy later, so not at once.
  if (++stalls_ % kPatience == 0) pump_all();
}

bool Connections::settled() {
  if (flush()) return true;
  stalled();
  return false;
}

void Connections::pump_all() {
  if (over()) return;
  for (auto& p : peers_) p->in.pump();
}

void Connections::forget_before(std::uint64_t oldest) {
  shared_.oldest = std::max(shared_.oldest, oldest);
  if (shared_.early_bytes > 0)
    for (auto& p : peers_) p->in.forget_old();
}

void Connections::announce(const CallRecord& call) {
  current_ = call.sequence;
  calls_[call.sequence % kCallHistory] = call;
}

// --- slow path -----------------------------------------------------------------------------------

/// A socket that takes nothing more is the first sign that a peer is gone; what it said last is
/// read first.
PeerState Connections::state(Rank rank) {
  Peer& p = peer(uindex(rank));
  if (p.in.state() == PeerState::present && p.out.broken()) {
    pump_all();
    if (p.in.state() == PeerState::present) return PeerState::dead;
  }
  return p.in.state();
}

Status Connections::check() {
  // Pairs with the release in abort(): why_ is visible.
  if (aborted_.load(std::memory_order_acquire)) return why_;
  if (left_) return shared_.problem;
  pump_all();
  for (auto& p : peers_) send_records(*p);
  flush_all();
  return shared_.problem;
}

/// Our record of the current call, and of those a peer has told us of: it is waiting in them.
void Connections::send_records(Peer& to) {
  send_record(to, current_);
  for (const CallRecord& theirs : to.in.calls()) send_record(to, theirs.sequence);
}

/// Once for each call and peer, if we still have it.
void Connections::send_record(Peer& to, std::uint64_t sequence) {
  const std::size_t at = sequence % kCallHistory;
  const CallRecord& ours = calls_[at];
  if (sequence == 0 || ours.sequence != sequence || to.records_sent[at] == sequence) return;
  to.records_sent[at] = sequence;
  FrameHeader header;
  header.type = kCall;
  header.bytes = sizeof ours;
  std::array<std::byte, sizeof ours> payload;
  std::memcpy(payload.data(), &ours, sizeof ours);
  send(to, header, payload.data());
}

bool Connections::call_of(Rank rank, std::uint64_t sequence, CallRecord& record) {
  if (rank == shared_.me) {
    const CallRecord& ours = calls_[sequence % kCallHistory];
    if (ours.sequence == sequence) record = ours;
    return ours.sequence == sequence;
  }
  Peer& p = peer(uindex(rank));
  if (!over()) {
    p.in.pump();
    send_record(p, sequence);
    send_records(p);
    flush(p);
  }
  const CallRecord* theirs = p.in.call(sequence);
  if (theirs != nullptr) record = *theirs;
  return theirs != nullptr;
}

void Connections::sleep(std::chrono::nanoseconds most) {
  for (auto& p : peers_) {
    if (!p->in.holds_unread()) continue;
    p->in.pump();  // Bytes in our own buffer wake nobody up.
    return;
  }
  wait_for_events(most);
}

void Connections::wait_for_events(std::chrono::nanoseconds most) {
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    const Peer& p = *peers_[i];
    const int wanted = (p.in.wants_bytes() ? POLLIN : 0) | (p.out.idle() ? 0 : POLLOUT);
    // ppoll also reports the end of a stream that was not asked for, so such sockets are left out.
    events_[i + 1] = {wanted == 0 ? -1 : p.fd.get(), static_cast<short>(wanted), 0};
  }
  const auto nanoseconds = std::max<std::int64_t>(most.count(), 0);
  const timespec time{static_cast<time_t>(nanoseconds / 1'000'000'000),
                      static_cast<long>(nanoseconds % 1'000'000'000)};
  ::ppoll(events_.data(), events_.size(), &time, nullptr);  // Woken for nothing is harmless.
  if (events_[0].revents == 0) return;
  std::uint64_t rings = 0;
  [[maybe_unused]] const ssize_t taken = ::read(doorbell_.get(), &rings, sizeof rings);
}

void Connections::wake() {
  const std::uint64_t one = 1;
  // Cannot fail: the counter is far from its limit.
  [[maybe_unused]] const ssize_t written = ::write(doorbell_.get(), &one, sizeof one);
}

// --- the end -------------------------------------------------------------------------------------

void Connections::abort(const Status& why) {
  const std::lock_guard lock(abort_mutex_);
  if (aborted_.load(std::memory_order_relaxed)) return;
  last_words_ = abort_frame(why);
  why_ = why;
  for (auto& p : peers_) p->out.abort();
  aborted_.store(true, std::memory_order_release);
}

/// For a peer that does not read, the stream ends in the middle of a frame: it learns at least that
/// this rank is gone.
void Connections::deliver_abort(const SocketKind& kind) {
  if (left_) return;
  await_delivery(kind, Deadline::in(kAbortTime));
  for (auto& p : peers_)
    if (!p->out.go_on_with_last_words()) p->out.close();
}

void Connections::leave(const SocketKind& kind) {
  if (std::exchange(left_, true)) return;
  const Deadline deadline = Deadline::in(kLeaveTime);
  FrameHeader goodbye;
  goodbye.type = kGoodbye;
  for (auto& p : peers_) send(*p, goodbye, nullptr);
  // Data that peers still send is read and dropped: a peer that is stuck in sending does not read.
  while (!flush_all() && !deadline.passed()) {
    for (auto& p : peers_)
      if (p->in.drain()) p->out.discard();
    wait_for_events(std::chrono::milliseconds(1));
  }
  for (auto& p : peers_) p->out.close();
  await_delivery(kind, deadline);
}

/// Until peers' hosts have all that was sent: a process that ends with unread data resets its
/// connections and loses what is under way. Reads and drops what arrives, as a peer that fails, too,
/// waits for that.
void Connections::await_delivery(const SocketKind& kind, Deadline deadline) {
  const bool aborted = aborted_.load(std::memory_order_acquire);
  const auto all_has_arrived = [&](Peer& p) {
    if (p.in.drain()) return true;
    return (!aborted || p.out.go_on_with_last_words()) && kind.all_delivered(p.fd.get());
  };
  for (;;) {
    bool waiting = false;
    for (auto& p : peers_) waiting |= !all_has_arrived(*p);
    if (!waiting || deadline.passed()) return;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

}  // namespace anyccl::sockets
