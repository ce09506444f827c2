#pragma once
// Resend keeps the bytes that one end of a link has sent, until the peer has received them. So a
// new connection can take the place of one that was lost (ANYCCL_RECONNECT). Both ends count the
// bytes of each direction. On a new connection each says first, in a Greeting, how many it has
// received, and the other sends the rest once more. The outbox and the reader call it.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace anyccl::link {

/// A link, as its two halves see it, where a connection can take the place of one that was lost.
class Reconnects {
 public:
  virtual ~Reconnects() = default;
  /// The connection has ended, with this errno; 0: by the peer. False: so has the link. Otherwise
  /// both halves are disconnected when it returns.
  virtual bool lose(int problem) = 0;
  /// The peer has received so many bytes of what this end has sent, over all connections. False: it
  /// cannot.
  virtual bool resume(std::uint64_t received) = 0;
  /// The peer is to be told what has been received.
  virtual void acknowledge() = 0;
};

/// The bytes that one end of a link keeps, and the counts of both directions.
///
/// Threads: one at a time, the holder of the link's lock.
class Resend {
 public:
  explicit Resend(Reconnects& l) : link(l) {}
  Reconnects& link;

  /// What each end sends first on every connection.
  struct Greeting {
    std::uint64_t magic = kMagic;
    std::uint64_t received = 0;  ///< Bytes of the other end's stream that this one needs no more.

    static constexpr std::uint64_t kMagic = 0x31'4E'4F'43'45'52'43'41;  // "ACRECON1"
  };

  // --- sending ----------------------------------------------------------------------------------
  /// A connection took these bytes of the stream.
  void note_sent(std::span<const std::byte> bytes) {
    kept_.insert(kept_.end(), bytes.begin(), bytes.end());
  }
  /// The peer needs nothing before `received`; it may have said more since, in another greeting.
  /// False: that is more than was sent.
  bool note_acknowledged(std::uint64_t received);
  /// Whether the peer has said that it needs none of it any more.
  bool is_settled() const { return dropped_ == kept_.size(); }
  /// Gives away the bytes that the peer needs once more: sending goes on with them, and note_sent()
  /// keeps them again. Absent: what it has received is not possible.
  std::optional<std::vector<std::byte>> take_rest(std::uint64_t received);

  // --- receiving --------------------------------------------------------------------------------
  /// A frame of so many bytes was received whole.
  void note_came(std::size_t bytes) { received_ += bytes; }
  std::uint64_t received() const { return received_; }
  /// Whether the peer should be told of that, so that it keeps no more than it must.
  bool owes_acknowledgement() const { return received_ - told_ >= kTellEvery; }
  std::uint64_t tell() { return told_ = received_; }

 private:
  static constexpr std::uint64_t kTellEvery = std::uint64_t{256} << 10;  // bytes

  std::vector<std::byte> kept_;  // What was sent from begin_ on.
  std::size_t dropped_ = 0;      // Bytes at the front of kept_ that are needed no more.
  std::uint64_t begin_ = 0;
  std::uint64_t received_ = 0, told_ = 0;
};

}  // namespace anyccl::link
