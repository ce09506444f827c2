#pragma once
// Transports talk with a peer through a channel, which is one communicator's end of a link. It
// sends and receives the frames of one context: data, call records, notices and credits. At the end
// it tells the peer whether the communicator has left or failed.

#include <poll.h>

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "base/deadline.hpp"
#include "platform/link/link.hpp"
#include "platform/transport/publications.hpp"

namespace anyccl::link {

/// One communicator's end of a link.
///
/// Threads: the holder of the communicator's progress lock, one at a time; abort() and wakes alone
/// may come from any thread. Other communicators that share the link run at the same time.
class Channel {
 public:
  enum class Delivered : std::uint8_t { peer_kernel, own_kernel };

  Channel(std::shared_ptr<Link> link, std::shared_ptr<Context> context, Flow& flow)
      : link_(std::move(link)), context_(std::move(context)), flow_(flow) {}
  /// What still comes is dropped. If neither say_goodbye() nor abort() was called, it aborts, but
  /// not as the last one on the link, whose end says the same.
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  Rank peer() const { return flow_.peer; }
  Link& link() const { return *link_; }
  Context& context() const { return *context_; }

  // --- sending ----------------------------------------------------------------------------------
  /// Whether the data frame `key` of `bytes` bytes may be sent now: the link's outbox has room, and
  /// the context has credit or the reader has asked for this frame. A peer that has left needs no
  /// credit, as the frame is dropped; to one that has aborted nothing may be sent, so that a rank
  /// that only sends waits and learns why.
  bool has_room(const Key& key, std::size_t bytes) const {
    return link_->out_.room(bytes) && !flow_.aborted &&
           (flow_.window.has_room(key, bytes) || flow_.goodbye);
  }
  /// Sends a frame, or queues what the socket does not take; whether nothing is queued. After
  /// say_goodbye() and abort(), and once the peer has said goodbye, it goes nowhere.
  bool send(FrameHeader header, const std::byte* payload);
  /// Sends a small frame along with the next one, which follows at once; returns what send() does.
  /// Not for data frames, as the window does not count them here.
  bool send_ahead(FrameHeader header, const std::byte* payload);
  /// Sends what is queued, for all contexts, as far as the socket takes it; whether nothing is
  /// left, or, on a link on demand, the peer takes nothing more from this context.
  bool flush();
  bool idle() const { return link_->out_.idle(); }
  /// A message of the transport, which next_notice() gives to the peer. Any thread. Ok, but not
  /// sent, once either end has left or aborted. Errors: system_error: there is no descriptor left
  /// to keep `descriptors` until they can be sent.
  Status send_notice(std::span<const std::byte> payload, std::span<const int> descriptors);

  // --- receiving --------------------------------------------------------------------------------
  /// The payload of `in`, or null while it is not there, another thread has the link (see
  /// Context::missed()), or it is not as it should be, which Context::problem() says then. It stays
  /// until consumed().
  const std::byte* poll(const Wanted& in);
  /// Frees the payload that poll() has given, and sends a credit when enough was consumed.
  void consumed(const Key& key);
  /// The header of the first fragment of `message`, if it has arrived. False also while another
  /// thread has the link: see Context::missed().
  bool peek(std::uint64_t message, FrameHeader& header);
  /// Takes in what has arrived, for all contexts, and sends what is queued. False: no notice is
  /// there.
  bool next_notice(Notice& notice);
  /// Waits for it. Errors: timeout, remote_error (the peer went away).
  Status await_notice(Notice& notice, Deadline deadline);
  /// Takes in what has arrived, up to a thousand frames of data, and sends what has to be said
  /// meanwhile: credits, and which frames are waited for.
  void pump();
  /// Forgets collective operations before Context::oldest.
  void forget_old();
  bool copy_call(std::uint64_t sequence, CallRecord& record);
  /// The sequence numbers of the call records received; 0: none.
  std::array<std::uint64_t, kCallHistory> call_sequences();
  /// The last collective of which the peer has sent something, a record or data; 0: none.
  std::uint64_t newest_call();

  /// Whether the peer has said goodbye; one that has aborted has not.
  bool has_left();
  /// The stream has ended, or takes nothing more, without a goodbye or an abort of the peer.
  bool is_dead();
  /// The first collective of which the peer was sent data when it was gone; 0: none, or the peer
  /// has aborted.
  std::uint64_t unread() const;
  /// Whether is_dead() because the peer's host does not answer.
  bool is_silent();
  /// How the peer's process has ended, as Transport::how_ended() says it.
  std::string how_ended() const;
  /// Looks whether the peer's host still answers; costs a system call. With ANYCCL_CHECKSUM it also
  /// sends a credit, by which the peer notices a missing frame.
  void look_for_silence();
  /// Nothing more will come.
  bool is_gone();
  /// Bytes of memory for what was not asked for yet.
  std::size_t early_bytes();

  // --- sleep ------------------------------------------------------------------------------------
  /// What to wait for with poll(2); fd -1 if nothing can come.
  pollfd poll_entry();
  /// Whether the link has read bytes, of any context, that no call has looked at yet.
  bool holds_unread();
  /// Ends the sleep of a peer that waits for this link.
  void ring();

  // --- the end ----------------------------------------------------------------------------------
  /// Tells the peer that this communicator has failed with `why`, unless it was told of an end
  /// before; from now on what comes is dropped. Never waits. Any thread.
  void abort(const Status& why);
  /// Tells the peer that nothing more will be sent; from now on what comes is dropped. Sends
  /// nothing after abort().
  void say_goodbye();
  /// After say_goodbye() or abort(): whether all that was sent is in the hands of the peer's
  /// kernel, with LinkSettings::reconnects of the peer, or nobody is there. Reads and drops what
  /// comes. Where the link stays, as another communicator of this rank may use it, and for `to`
  /// own_kernel: whether all has left the queue.
  bool is_delivered(Delivered to = Delivered::peer_kernel);
  /// Ends the stream after what the socket has taken, unless the link is on demand, or another
  /// communicator of this rank may use it, or one that has failed and not left.
  void close_last();
  /// After abort(): ends the stream where the peer does not take it and no other communicator may
  /// use it, so that the peer learns at least that this rank is gone.
  void close_if_stuck();

 private:
  /// Whether another communicator uses the link, or may: always true of a link on demand.
  bool is_shared();
  bool is_over() const;
  void note_unread(const FrameHeader& header);
  void send_last(FrameHeader last, const std::byte* payload);
  void note_wanted(const Key& key);
  void send_credit();
  void ask_for_wanted();
  bool fits(const Wanted& in, const FrameHeader& header);

  const std::shared_ptr<Link> link_;
  const std::shared_ptr<Context> context_;
  Flow& flow_;
  std::uint64_t unread_ = 0;              // See unread(); with the link's lock.
  bool ended_ = false;                    // Said goodbye or aborted; with the link's lock.
  std::array<Key, kMostLanes> wanted_{};  // Polled for in vain, the newest of each lane.
  std::size_t next_wanted_ = 0;
};

/// A peer, as the transports of a communicator get it.
struct PeerChannel {
  Rank rank{};
  std::unique_ptr<Channel> channel;  ///< Null if it is opened on `link` at its first use.
  bool local = false;                ///< A unix socket: the peer is on this host.
  bool same_process = false;         ///< The peer is a thread of this process.
  std::shared_ptr<Link> link = {};
};

}  // namespace anyccl::link
