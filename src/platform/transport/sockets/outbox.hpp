#pragma once

#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "platform/transport/sockets/frame.hpp"

namespace anyccl::sockets {

/// The sending half of the stream to one peer: what the socket does not take at once is copied into
/// a queue. One thread, the owner, calls everything but abort(), which any thread may call.
///
/// The socket and the queue belong to who holds state_. The owner takes it for each write and gives
/// it back; it never waits for it, because the only other taker is abort(), after which nothing
/// else may be sent.
class Outbox {
 public:
  /// `last_words`: the abort frame; written before the first call of abort(), not changed after it.
  Outbox(int fd, const std::vector<std::byte>& last_words) : fd_(fd), last_words_(last_words) {}

  /// Whether a frame with `bytes` bytes of payload may be sent now. A large one has to wait until
  /// the queue is empty: the socket then takes most of it, and only the rest is copied.
  bool room(std::size_t bytes) const {
    return idle() || (bytes <= kSmall && queued() + bytes <= kMostQueued);
  }
  /// Sends a frame, or queues what the socket does not take. Drops it if the peer has closed the
  /// connection or abort() was called. `payload` is not needed after the call.
  void send(const FrameHeader& header, const std::byte* payload);
  /// Sends what is queued as far as the socket takes it; whether nothing is left.
  bool flush();
  /// Whether nothing is queued (nothing ever is after abort()).
  bool idle() const {
    return queued() == 0 || (state_.load(std::memory_order_relaxed) & kAborted) != 0;
  }
  /// Whether the socket takes nothing more, or discard() was called.
  bool broken() const { return broken_; }
  /// The peer will read nothing more: drops what is queued and all that comes.
  void discard();
  /// Ends the stream after what was sent: the peer reads an end of file.
  void close();

  /// Ends the stream with last_words, as far as the socket takes them now. Any thread.
  void abort();
  /// After abort(): more of them; whether nothing more can be said.
  bool go_on_with_last_words();

 private:
  enum State : std::uint8_t { kHeld = 1, kAborted = 2 };
  static constexpr std::size_t kSmall = 32768, kMostQueued = std::size_t{256} << 10;

  bool hold();
  void release();
  void begin_last_words();
  std::size_t write_small(const FrameHeader& header, const std::byte* payload);
  std::size_t write(std::span<iovec> parts);
  void queue(std::span<const iovec> parts, std::size_t skip);
  std::size_t queued() const { return queue_.size() - sent_; }

  const int fd_;
  const std::vector<std::byte>& last_words_;
  std::atomic<std::uint8_t> state_{0};
  bool broken_ = false;  // The peer takes nothing more.
  std::vector<std::byte> queue_;
  std::size_t sent_ = 0;  // How much of queue_ is gone.
  // After abort(): what is left of the queue and of last_words_.
  std::vector<std::byte> left_;
  std::size_t said_ = 0;
};

}  // namespace anyccl::sockets
