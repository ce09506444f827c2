#pragma once
// Connections hold the channels of one rank to the peers of a socket transport, over which
// publications and messages both go. They also serve the rest of the transport: call records,
// states of peers, sleep, failures and the end.

#include <poll.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/deadline.hpp"
#include "platform/link/channel.hpp"
#include "platform/transport/transport.hpp"

namespace anyccl::sockets {

struct Peer {
  explicit Peer(std::unique_ptr<link::Channel> c) : channel(std::move(c)) {}

  const std::unique_ptr<link::Channel> channel;
  bool queued = false;                                     // Connections counts it in queues_.
  std::array<std::uint64_t, kCallHistory> records_sent{};  // Sequence numbers, by sequence % size.
};

/// The channels of one rank to its peers. A peer whose link connects on demand gets its channel
/// when this rank sends to it or waits for it, or when it has connected itself.
///
/// Threads: as Transport.
class Connections {
 public:
  explicit Connections(std::shared_ptr<link::Context> context) : context_(std::move(context)) {}
  /// Ranks ascend.
  void add(link::PeerChannel peer);

  std::span<const Rank> ranks() const { return ranks_; }
  link::Channel& channel(std::uint32_t rank) { return *peer(rank).channel; }
  /// Bytes that keep what came and was not asked for yet.
  std::size_t memory_bytes();
  bool is_vague() const { return context_->is_vague(); }

  // --- fast path --------------------------------------------------------------------------------
  /// Sends a frame, or queues what the socket does not take. The peer has room for it.
  void send(std::uint32_t to, const link::FrameHeader& header, const std::byte* payload);
  /// Whether every one of these readers takes its part of `key` now; false counts as note_stall().
  bool has_room(const link::Key& key, std::span<const ReaderOf> readers);
  /// Sends what is queued as far as sockets take it; whether nothing is left.
  bool flush() { return queues_ == 0 || flush_all(); }
  /// Whether everything is sent; false counts as note_stall().
  bool settled();
  /// Something came: the next stall is the first one again.
  void moved() { stalls_ = 0; }
  /// Nobody asks for operations before `oldest`; what is left of them (after calls that did not fit
  /// together) must not pile up.
  void forget_before(std::uint64_t oldest);
  /// Keeps the record, which check() and call_of() send. `unasked`: it goes along with the first
  /// frame to each peer.
  void announce(const CallRecord& call, bool unasked);

  /// The channel to this peer, if it has been opened.
  link::Channel* opened(Rank rank) const;

  // --- slow path: see Transport -----------------------------------------------------------------
  void expect(Rank rank) { peer(uindex(rank)); }
  PeerState state(Rank rank);
  std::string how_ended(Rank rank);
  /// Returns the first collective of which `rank` was sent data when it was gone; 0: none.
  std::uint64_t unread_by(Rank rank) const;
  Status check();
  /// Sends `rank` our records and reads what has come; whether its record of `sequence` is known.
  bool call_of(Rank rank, std::uint64_t sequence, CallRecord& record);
  Status glance();
  bool known_call_of(Rank rank, std::uint64_t sequence, CallRecord& record) const;
  PeerCalls calls_of(Rank rank) const;
  void prepare_sleep() { context_->prepare_sleep(); }
  void append_events(std::vector<pollfd>& events);
  /// Reads what a link holds in its own buffer and returns at once, if there is such a link.
  void sleep(std::chrono::nanoseconds most, std::span<const pollfd> others);
  void end_sleep() { context_->end_sleep(); }
  bool wakes_surely() const { return !context_->missed(); }
  void wake() { context_->doorbell.ring(); }
  void abort(const Status& why);
  void deliver_abort();
  void leave(Deadline deadline);

 private:
  bool over() const { return left_ || aborted_.load(std::memory_order_relaxed); }
  Peer& peer(std::uint32_t rank) {
    Peer* const known = peer_of_[rank];
    return known != nullptr ? *known : open_on_demand(rank);
  }
  /// Opens the channel to a rank that had none; to nowhere if this communicator is known to have
  /// ended there.
  Peer& open_on_demand(std::uint32_t rank);
  void open_attached();
  void open_neighbours();
  void end_unopened(link::FrameType type, std::span<const std::byte> payload);
  void note_queue(Peer& to, bool is_empty);
  void flush(Peer& to);
  bool flush_all();
  /// Reads what peers have sent; does nothing after abort() or leave().
  void pump_all();
  void look_for_silence();
  void note_stall();
  void send_record(Peer& to, std::uint64_t sequence, bool ahead = false);
  void send_records(Peer& to);
  void wait_for_events(std::chrono::nanoseconds most, std::span<const pollfd> others);
  using Delivered = link::Channel::Delivered;
  void await_delivery(Deadline deadline, Delivered to = Delivered::peer_kernel);

  const std::shared_ptr<link::Context> context_;
  std::vector<Rank> ranks_;
  std::vector<std::unique_ptr<Peer>> peers_;  // Those opened. Grows with abort_mutex_, too.
  std::vector<Peer*> peer_of_;                // By rank; null where it is not opened.
  std::vector<std::shared_ptr<link::Link>> unopened_;  // By rank; null elsewhere.
  std::shared_ptr<link::Connector> connector_;         // Connects those; null if there are none.
  std::uint64_t attached_ = 0;                         // connector_'s, when this rank last looked.
  std::vector<pollfd> events_;                         // The doorbell, then as peers_, then others.
  std::size_t queues_ = 0;       // How many links this rank has left something queued on.
  std::uint64_t forgotten_ = 0;  // Frames of older operations than this are gone.
  unsigned stalls_ = 0;          // In a row, with nothing that came in between.
  std::chrono::steady_clock::time_point next_look_{};  // For silent hosts.
  std::array<CallRecord, kCallHistory> calls_{};       // Ours, by sequence % size.
  std::uint64_t current_ = 0;
  bool unasked_ = false;  // See announce().
  bool left_ = false;

  std::mutex abort_mutex_;  // Between calls of abort(), and with open_on_demand().
  Status why_;              // Set before aborted_.
  std::atomic<bool> aborted_{false};
};

}  // namespace anyccl::sockets
