#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>

#include "platform/transport/sockets/arrivals.hpp"
#include "platform/transport/sockets/buffer_pool.hpp"
#include "platform/transport/sockets/frame.hpp"
#include "platform/transport/transport.hpp"

namespace anyccl::sockets {

/// State that the inboxes of one transport share.
struct Shared {
  Rank me{};
  std::size_t early_limit = 0;  ///< How much may wait unasked for, beyond kEarlyPerPeer each.
  std::size_t early_bytes = 0;  ///< How much does.
  std::uint64_t oldest = 0;     ///< Collective operations before this one are of no interest.
  BufferPool pool;
  Status problem;      ///< The first thing that went wrong: check() returns it.
  bool vague = false;  ///< It only says that two calls differ: a peer that knows more may say so.

  void note(Status what, bool is_vague = false) {
    if (!problem.ok() && (!vague || is_vague)) return;
    problem = std::move(what);
    vague = is_vague;
  }
};

/// A data frame that this rank asks for.
struct Wanted {
  Key key;
  std::uint32_t digest = 0;
  bool sized = false;
  std::size_t bytes = 0;
  std::uint64_t total = 0;    ///< If `sized`.
  std::byte* into = nullptr;  ///< Null, or where its payload may be put.
};

/// The receiving half of the stream from one peer. Frames come in the peer's order; what is asked
/// for goes straight to its place, what comes before it is kept until it is asked for.
class Inbox {
 public:
  Inbox(int fd, Rank peer, Shared& shared);

  /// See Messages::peek().
  bool peek(std::uint64_t message, Envelope& envelope);
  /// Its payload, or null while it is not there or is not as it should be, which Shared::problem
  /// says then. The payload stays until consumed().
  const std::byte* poll(const Wanted& in);
  void consumed(const Key& key);
  /// Takes in all that has arrived, as far as there is room for it.
  void pump() { read_frames(nullptr); }
  /// Forgets collective operations before Shared::oldest.
  void forget_old();

  PeerState state() const { return state_; }
  bool ended() const { return ended_; }
  /// Record of call `sequence`, or null.
  const CallRecord* call(std::uint64_t sequence) const;
  /// The newest records received; sequence 0 where there is none.
  const std::array<CallRecord, kCallHistory>& calls() const { return calls_; }
  /// Whether reading more could help now: not at the end of the stream, and there is room.
  bool wants_bytes() const { return !ended_ && (!in_frame_ || target_ != nullptr); }
  /// Whether bytes were read from the socket that no call has looked at yet.
  bool holds_unread() const { return unread_; }

  /// Reads and drops what has arrived, for the end: from now on nothing is written to memory of the
  /// caller's and no frame is completed. Whether the end of the stream was reached.
  bool drain();

 private:
  bool read_frames(const Wanted* wanted);
  bool next_header(const Wanted* wanted);
  bool handle_control(const FrameHeader& header);
  bool choose_target(const Wanted* wanted);
  bool receive_payload();
  void finish_frame();

  bool fill(std::size_t most);
  bool arrived(ssize_t result);
  void malformed(const char* what);
  bool fits(const Wanted& in, const FrameHeader& header);
  std::size_t staged() const { return end_ - begin_; }

  const int fd_;
  const Rank peer_;
  Shared& shared_;
  Arrivals arrivals_;
  std::array<CallRecord, kCallHistory> calls_{};
  PeerState state_ = PeerState::present;
  bool ended_ = false;  // Nothing more will be read.
  bool goodbye_ = false;
  bool unread_ = false;

  // The data frame that is being received.
  bool in_frame_ = false;
  FrameHeader frame_;
  Buffer buffer_;                // Empty if target_ is the caller's memory.
  std::byte* target_ = nullptr;  // Null: not chosen yet.
  std::size_t received_ = 0;

  // Bytes read but not looked at: small frames come many at a time.
  std::size_t begin_ = 0, end_ = 0;
  alignas(64) std::array<std::byte, 16384> staging_;
};

}  // namespace anyccl::sockets
