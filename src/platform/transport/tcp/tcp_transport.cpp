#include "platform/transport/tcp/tcp_transport.hpp"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>

#include "base/deadline.hpp"
#include "base/error.hpp"
#include "base/private_fd.hpp"
#include "platform/transport/tcp/inbox.hpp"
#include "platform/transport/tcp/outbox.hpp"
#include "platform/transport/tcp/socket_setup.hpp"

// Why this cannot deadlock. A sender waits only while a peer's socket is full, so while that peer
// does not read. But whoever waits reads: check(), which every wait calls, and stalled(), which is
// called while this rank waits to send, take in what all peers have sent, asked for or not. What is
// not asked for yet goes into the early store. So bytes flow as if sockets had room for all of it,
// and plans are free of deadlock even if nothing is buffered.
//
// The store has a bound. Reading from a peer stops when it is full and more than 16 MiB of that
// peer's frames are in it. Within a lane a pair's frames are asked for in the order in which they
// were sent, so all of these belong to lanes that are behind here but ahead at the sender, or to
// later operations and messages. It would take lanes of one sender that are further apart than the
// bound (256 MiB), while tiles are a few MiB, to keep a frame that is needed behind frames that are
// not.

namespace anyccl::tcp {
namespace {

constexpr auto kLeaveTime = std::chrono::seconds(1);

struct Peer {
  Peer(Rank r, UniqueFd f, SocketKind k, Shared& shared, const std::vector<std::byte>& last_words)
      : fd(std::move(f)), kind(std::move(k)), in(fd.get(), r, shared), out(fd.get(), last_words) {}

  const PrivateFd fd;
  const SocketKind kind;
  Inbox in;
  Outbox out;
  bool queued = false;                                     // Counted in queues_.
  std::array<std::uint64_t, kCallHistory> records_sent{};  // Sequence numbers, by sequence % size.
};

class TcpTransport final : public Transport {
 public:
  TcpTransport(Rank me, std::size_t early_bytes, UniqueFd doorbell)
      : doorbell_(std::move(doorbell)) {
    shared_.me = me;
    shared_.early_limit = early_bytes;
    events_.push_back({doorbell_.get(), POLLIN, 0});
  }
  void add(TcpPeer peer, SocketKind kind);

  std::string_view name() const override { return name_; }
  std::span<const Rank> peers() const override { return ranks_; }

  void begin(const CallRecord& call) override {
    current_ = call.sequence;
    calls_[call.sequence % kCallHistory] = call;
  }
  Offered offer(const Outgoing& out, const std::byte* source, bool lendable) override;
  std::byte* reserve(const Outgoing& out) override;
  void publish(const Outgoing& out) override { send_parts(out, result_.data()); }
  std::size_t fragment_bytes() const override { return std::size_t{256} << 10; }
  bool takes_any_memory() const override { return true; }

  bool peek(Rank from, std::uint64_t message, Envelope& envelope) override;
  const std::byte* poll(const Incoming& in) override;
  void consumed(const Incoming& in) override { peer(in.rank).in.consumed(in); }

  void post(std::uint64_t, std::uint32_t, std::uint32_t) override {}
  bool finished(std::uint64_t operation, bool everyone) override;
  bool settled() override;
  bool is_behind(Rank rank) override { return !peer(uindex(rank)).out.idle(); }

  Status check() override;
  bool is_vague() const override { return shared_.vague; }
  PeerState state(Rank rank) override;
  bool call_of(Rank rank, std::uint64_t sequence, CallRecord& record) override;
  void sleep(std::chrono::nanoseconds most) override;
  void wake() override;

  void abort(const Status& why) override;
  void leave() override;

 private:
  Peer& peer(std::uint32_t rank) { return *peer_of_[rank]; }
  bool over() const { return left_ || aborted_.load(std::memory_order_relaxed); }

  bool has_room(const Outgoing& out);
  void send_parts(const Outgoing& out, const std::byte* source);
  void send(Peer& to, const FrameHeader& header, const std::byte* payload);
  void flush(Peer& to);
  bool flush_all();
  void pump_all();
  void stalled();
  void send_record(Peer& to, std::uint64_t sequence);
  void send_records(Peer& to);
  void wait_for_events(std::chrono::nanoseconds most);

  std::string name_ = "tcp";
  std::vector<Rank> ranks_;
  Shared shared_;
  std::vector<std::byte> last_words_;         // The abort frame: see Outbox.
  std::vector<std::unique_ptr<Peer>> peers_;  // As ranks_.
  std::vector<Peer*> peer_of_;                // By rank; null where it is not reached.
  UniqueFd doorbell_;                         // An eventfd: who sleeps wakes up.
  std::vector<pollfd> events_;                // The doorbell, then as peers_.
  std::size_t queues_ = 0;                    // How many peers have something queued.
  unsigned stalls_ = 0;  // How often in a row a peer's socket was full and nothing came.
  Buffer result_;        // For reserve().
  std::array<CallRecord, kCallHistory> calls_{};  // Ours, by sequence % size.
  std::uint64_t current_ = 0;
  bool left_ = false;

  std::mutex abort_mutex_;  // Between calls of abort().
  Status why_;              // Set before aborted_.
  std::atomic<bool> aborted_{false};
};

void TcpTransport::add(TcpPeer peer, SocketKind kind) {
  if (ranks_.empty()) name_ = "tcp/" + (kind.tcp ? kind.congestion : std::string("unix"));
  ranks_.push_back(peer.rank);
  peers_.push_back(
      std::make_unique<Peer>(peer.rank, std::move(peer.fd), std::move(kind), shared_, last_words_));
  peer_of_.resize(uindex(peer.rank) + 1, nullptr);
  peer_of_.back() = peers_.back().get();
  events_.push_back({});
}

// --- publishing ----------------------------------------------------------------------------------

Transport::Offered TcpTransport::offer(const Outgoing& out, const std::byte* source, bool) {
  for (const ReaderOf& reader : out.readers)
    if (reader.bytes > kMaxFrame) return Offered::refused;
  if (!has_room(out)) return Offered::busy;
  send_parts(out, source);
  return Offered::copied;
}

std::byte* TcpTransport::reserve(const Outgoing& out) {
  if (!has_room(out)) return nullptr;
  if (result_.capacity() < out.bytes || !result_) {
    shared_.pool.give(std::move(result_));
    result_ = shared_.pool.take(out.bytes);
  }
  return result_.data();
}

bool TcpTransport::has_room(const Outgoing& out) {
  if (queues_ == 0) return true;
  flush_all();
  for (const ReaderOf& reader : out.readers) {
    if (peer(reader.rank).out.room(reader.bytes)) continue;
    stalled();
    return false;
  }
  stalls_ = 0;
  return true;
}

void TcpTransport::send_parts(const Outgoing& out, const std::byte* source) {
  for (const ReaderOf& reader : out.readers)
    send(peer(reader.rank), data_header(out, reader), source + reader.offset);
}

void TcpTransport::send(Peer& to, const FrameHeader& header, const std::byte* payload) {
  to.out.send(header, payload);
  if (to.queued || to.out.idle()) return;
  to.queued = true;
  ++queues_;
}

void TcpTransport::flush(Peer& to) {
  if (!to.queued) return;
  // Who has left may keep the connection open, but reads it no more.
  if (to.in.state() != PeerState::present) to.out.discard();
  if (!to.out.flush()) return;
  to.queued = false;
  --queues_;
}

bool TcpTransport::flush_all() {
  for (std::size_t i = 0; i < peers_.size() && queues_ > 0; ++i) flush(*peers_[i]);
  return queues_ == 0;
}

/// Called each time this rank waits for a peer to read: see the top of this file.
void TcpTransport::stalled() {
  constexpr unsigned kPatience = 64;  // Reading unasked costs a copy later, so not at once.
  if (++stalls_ % kPatience == 0) pump_all();
}

// --- reading -------------------------------------------------------------------------------------

bool TcpTransport::peek(Rank from, std::uint64_t message, Envelope& envelope) {
  if (queues_ > 0) flush_all();
  return peer(uindex(from)).in.peek(message, envelope);
}

const std::byte* TcpTransport::poll(const Incoming& in) {
  if (queues_ > 0) flush_all();
  const std::byte* data = peer(in.rank).in.poll(in);
  if (data != nullptr) stalls_ = 0;
  return data;
}

void TcpTransport::pump_all() {
  if (over()) return;
  for (auto& p : peers_) p->in.pump();
}

bool TcpTransport::finished(std::uint64_t operation, bool) {
  // Nobody asks for an operation that was finished long ago; what is left of it (after calls that
  // did not fit together) must not pile up.
  if (operation > kCallHistory) {
    shared_.oldest = std::max(shared_.oldest, operation - kCallHistory);
    if (shared_.early_bytes > 0)
      for (auto& p : peers_) p->in.forget_old();
  }
  return settled();
}

bool TcpTransport::settled() {
  if (queues_ == 0 || flush_all()) return true;
  stalled();
  return false;
}

// --- slow path -----------------------------------------------------------------------------------

/// A socket that takes nothing more is the first sign that a peer is gone; what it said last is
/// read first.
PeerState TcpTransport::state(Rank rank) {
  Peer& p = peer(uindex(rank));
  if (p.in.state() == PeerState::present && p.out.broken()) {
    pump_all();
    if (p.in.state() == PeerState::present) return PeerState::dead;
  }
  return p.in.state();
}

Status TcpTransport::check() {
  // Pairs with the release in abort(): why_ is visible.
  if (aborted_.load(std::memory_order_acquire)) return why_;
  if (left_) return shared_.problem;
  pump_all();
  for (auto& p : peers_) send_records(*p);
  flush_all();
  return shared_.problem;
}

/// Our record of the current call, and of those a peer has told us of: it is waiting in them.
void TcpTransport::send_records(Peer& to) {
  send_record(to, current_);
  for (const CallRecord& theirs : to.in.calls()) send_record(to, theirs.sequence);
}

/// Once for each call and peer, if we still have it.
void TcpTransport::send_record(Peer& to, std::uint64_t sequence) {
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

bool TcpTransport::call_of(Rank rank, std::uint64_t sequence, CallRecord& record) {
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

void TcpTransport::sleep(std::chrono::nanoseconds most) {
  for (auto& p : peers_) {
    if (!p->in.holds_unread()) continue;
    p->in.pump();  // What lies in our own buffer wakes nobody up.
    return;
  }
  wait_for_events(most);
}

void TcpTransport::wait_for_events(std::chrono::nanoseconds most) {
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

void TcpTransport::wake() {
  const std::uint64_t one = 1;
  // Cannot fail: the counter is far from its limit.
  [[maybe_unused]] const ssize_t written = ::write(doorbell_.get(), &one, sizeof one);
}

// --- the end -------------------------------------------------------------------------------------

void TcpTransport::abort(const Status& why) {
  const std::lock_guard lock(abort_mutex_);
  if (aborted_.load(std::memory_order_relaxed)) return;
  last_words_ = abort_frame(why);
  why_ = why;
  for (auto& p : peers_) p->out.abort();
  aborted_.store(true, std::memory_order_release);
}

void TcpTransport::leave() {
  if (std::exchange(left_, true)) return;
  const Deadline deadline = Deadline::in(kLeaveTime);
  FrameHeader goodbye;
  goodbye.type = kGoodbye;
  for (auto& p : peers_) send(*p, goodbye, nullptr);
  // What peers still send is read and dropped: they may be stuck in sending and then not read.
  while (!flush_all() && !deadline.passed()) {
    for (auto& p : peers_)
      if (p->in.drain()) p->out.discard();
    wait_for_events(std::chrono::milliseconds(1));
  }
  for (auto& p : peers_) p->out.close();
  for (;;) {
    bool waiting = false;
    for (auto& p : peers_) waiting |= !p->in.drain() && !all_delivered(p->fd.get(), p->kind);
    if (!waiting || deadline.passed()) return;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

}  // namespace

Result<std::unique_ptr<Transport>> make_tcp_transport(Rank me, std::vector<TcpPeer> peers,
                                                      TcpOptions options) {
  std::sort(peers.begin(), peers.end(),
            [](const TcpPeer& a, const TcpPeer& b) { return a.rank < b.rank; });
  UniqueFd doorbell(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!doorbell) return system_error(errno, "eventfd");
  auto transport = std::make_unique<TcpTransport>(me, options.early_bytes, std::move(doorbell));
  Rank previous{-1};
  for (TcpPeer& peer : peers) {
    if (peer.rank == me || peer.rank == previous || index(peer.rank) < 0 || !peer.fd)
      return error(Code::invalid_argument,
                   "rank {} cannot reach rank {} over TCP: it is given twice, is this rank, or has "
                   "no connection",
                   index(me), index(peer.rank));
    previous = peer.rank;
    ANYCCL_TRY(SocketKind kind, set_up_socket(peer.fd.get(), options.congestion));
    transport->add(std::move(peer), std::move(kind));
  }
  return std::unique_ptr<Transport>(std::move(transport));
}

}  // namespace anyccl::tcp
