#pragma once
// The connections of one rank to its peers, over which publications and messages both go.
//
// Why this cannot deadlock. A sender waits only while a peer's socket is full, so while that peer
// does not read. But a rank that waits does read: check(), which every wait calls, and stalled(),
// which is called while this rank waits to send, take in what all peers have sent, asked for or
// not. Frames that are not asked for yet go into the early store. So bytes flow as if sockets had
// room for all of it, and plans are free of deadlock even if nothing is buffered.
//
// The store has a bound. Reading from a peer stops when it is full and more than 16 MiB of that
// peer's frames are in it. Within a lane a pair's frames are asked for in the order in which they
// were sent, so all of these belong to lanes that are behind here but ahead at the sender, or to
// later operations and messages. It would take lanes of one sender that are further apart than the
// bound (256 MiB), while tiles are a few MiB, to keep a frame that is needed behind frames that are
// not.

#include <poll.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <vector>

#include "base/deadline.hpp"
#include "base/private_fd.hpp"
#include "base/unique_fd.hpp"
#include "platform/transport/sockets/inbox.hpp"
#include "platform/transport/sockets/outbox.hpp"
#include "platform/transport/sockets/socket_transport.hpp"

namespace anyccl::sockets {

struct Peer {
  Peer(Rank r, UniqueFd f, Shared& shared, const std::vector<std::byte>& last_words)
      : fd(std::move(f)), in(fd.get(), r, shared), out(fd.get(), last_words) {}

  const PrivateFd fd;
  Inbox in;
  Outbox out;
  bool queued = false;                                     // Connections counts it in queues_.
  std::array<std::uint64_t, kCallHistory> records_sent{};  // Sequence numbers, by sequence % size.
};

/// Threads: as Transport.
class Connections {
 public:
  /// `doorbell`: an eventfd, which wakes a sleeper.
  Connections(Rank me, std::size_t early_bytes, UniqueFd doorbell);
  void add(Rank rank, UniqueFd fd);

  std::span<const Rank> ranks() const { return ranks_; }
  Peer& peer(std::uint32_t rank) { return *peer_of_[rank]; }
  BufferPool& pool() { return shared_.pool; }
  /// Of what came and was not asked for yet, and of buffers kept for what comes next.
  std::size_t memory_bytes() const { return shared_.early_bytes + shared_.pool.kept_bytes(); }
  bool is_vague() const { return shared_.vague; }

  // --- fast path --------------------------------------------------------------------------------
  /// Sends a frame, or queues what the socket does not take. The peer has room for it.
  void send(Peer& to, const FrameHeader& header, const std::byte* payload);
  /// Whether every one of these readers takes its part now; false counts as stalled().
  bool has_room(std::span<const ReaderOf> readers);
  /// Sends what is queued as far as sockets take it; whether nothing is left.
  bool flush() { return queues_ == 0 || flush_all(); }
  /// Whether everything is sent; false counts as stalled().
  bool settled();
  /// Something came: the next stall is the first one again.
  void moved() { stalls_ = 0; }
  /// Nobody asks for operations before `oldest`; what is left of them (after calls that did not fit
  /// together) must not pile up.
  void forget_before(std::uint64_t oldest);
  void announce(const CallRecord& call);

  // --- slow path: see Transport -----------------------------------------------------------------
  PeerState state(Rank rank);
  Status check();
  bool call_of(Rank rank, std::uint64_t sequence, CallRecord& record);
  void sleep(std::chrono::nanoseconds most);
  void wake();
  void abort(const Status& why);
  void deliver_abort(const SocketKind& kind);
  void leave(const SocketKind& kind);

 private:
  bool over() const { return left_ || aborted_.load(std::memory_order_relaxed); }
  void flush(Peer& to);
  bool flush_all();
  void pump_all();
  void stalled();
  void send_record(Peer& to, std::uint64_t sequence);
  void send_records(Peer& to);
  void wait_for_events(std::chrono::nanoseconds most);
  void await_delivery(const SocketKind& kind, Deadline deadline);

  std::vector<Rank> ranks_;
  Shared shared_;
  std::vector<std::byte> last_words_;         // The abort frame: see Outbox.
  std::vector<std::unique_ptr<Peer>> peers_;  // As ranks_.
  std::vector<Peer*> peer_of_;                // By rank; null where it is not reached.
  UniqueFd doorbell_;
  std::vector<pollfd> events_;                    // The doorbell, then as peers_.
  std::size_t queues_ = 0;                        // How many peers have something queued.
  unsigned stalls_ = 0;                           // In a row, with nothing that came in between.
  std::array<CallRecord, kCallHistory> calls_{};  // Ours, by sequence % size.
  std::uint64_t current_ = 0;
  bool left_ = false;

  std::mutex abort_mutex_;  // Between calls of abort().
  Status why_;              // Set before aborted_.
  std::atomic<bool> aborted_{false};
};

}  // namespace anyccl::sockets
