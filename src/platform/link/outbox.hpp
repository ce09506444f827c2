#pragma once
// An outbox writes the frames of one end of a link to its socket. Bytes that the socket does not
// take at once wait in a queue, as do all frames that are sent before there is a connection. Links
// and channels call it, and no call waits for the peer.

#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <list>
#include <span>
#include <vector>

#include "base/secure_stream.hpp"
#include "base/unique_fd.hpp"
#include "platform/link/chaos.hpp"
#include "platform/link/frame.hpp"
#include "platform/link/resend.hpp"
#include "platform/link/seal.hpp"

namespace anyccl::link {

/// The sending half of a link.
///
/// Threads: one at a time, the holder of the link's lock; room() and idle() alone may be called by
/// any thread.
class Outbox {
 public:
  /// `fd`: -1 until connect().
  explicit Outbox(int fd) : fd_(fd) {}
  /// Before the first frame. `seals`: every frame has a Seal. `chaos`: faults, or null. `resend`:
  /// null if a connection that is lost ends the link.
  void set_up(bool seals, Chaos* chaos, Resend* resend = nullptr) {
    seals_ = seals;
    chaos_ = chaos;
    resend_ = resend;
  }
  /// `secure`: what encrypts, or null. With `resend` only a greeting is sent before resume().
  void connect(int fd, SecureStream* secure = nullptr);
  /// The connection is lost: what is sent waits for another one.
  void disconnect();
  /// The peer has received so much: from there on it is sent over this connection. False: it cannot
  /// have.
  bool resume(std::uint64_t received);

  /// Whether a frame with `bytes` bytes of payload may be sent now. A large one has to wait until
  /// the queue is empty: the socket then takes most of it, and only the rest is copied.
  bool room(std::size_t bytes) const {
    return (idle() && fd() >= 0) || (bytes <= kSmall && queued() + bytes <= kMostQueued);
  }
  /// Whether nothing is queued.
  bool idle() const { return queued() == 0; }
  /// Bytes that are queued.
  std::size_t queued() const { return queued_.load(std::memory_order_relaxed); }
  /// Sends a frame, or queues what the socket does not take. Drops it if the peer has closed the
  /// connection. `payload` is not needed after the call.
  void send(const FrameHeader& header, const std::byte* payload);
  /// Sends a small frame along with the next one, unless flush() comes first.
  void send_ahead(const FrameHeader& header, const std::byte* payload);
  /// Sends a frame with descriptors, which are duplicated if they have to wait. False, and nothing
  /// is sent: this process has no descriptor left for that.
  bool send(const FrameHeader& header, const std::byte* payload, std::span<const int> descriptors);
  /// Sends what is queued as far as the socket takes it; whether nothing is left.
  bool flush();
  /// Whether the socket takes nothing more, or discard() was called.
  bool broken() const { return broken_; }
  /// The errno with which the socket took nothing more; 0: none.
  int problem() const { return problem_; }
  /// The peer will read nothing more: drops what is queued and all that comes.
  void discard();
  /// Ends the stream after what the socket has taken: the peer reads an end of file. What is still
  /// queued is not sent.
  void close();
  bool is_closed() const { return closed_; }

 private:
  static constexpr std::size_t kSmall = 32768, kMostQueued = std::size_t{256} << 10;

  /// Descriptors that go with the frame that begins at this byte of the queue.
  struct Attached {
    std::size_t at = 0;
    std::vector<UniqueFd> descriptors;
  };

  bool put(const FrameHeader& header, const std::byte* payload, std::span<const int> descriptors);
  template <typename Head>
  bool transmit(const Head& head, const std::byte* payload, std::size_t bytes,
                std::span<const int> descriptors);
  template <typename Head>
  void transmit_behind(const Head& head, const std::byte* payload, std::size_t bytes);
  bool reorder(const FrameHeader& header, const std::byte* payload);
  void release_overtaken();
  template <typename Head>
  std::size_t write_small(const Head& head, const std::byte* payload, std::size_t bytes);
  /// With Resend it sends nothing before both greetings are through, and keeps what is sent.
  std::size_t write(std::span<iovec> parts, std::span<const int> descriptors = {});
  std::size_t write_now(std::span<iovec> parts, std::span<const int> descriptors);
  void fail(int problem);
  void greet();
  std::size_t write_secure(std::span<const iovec> parts);
  void queue(std::span<const iovec> parts, std::size_t skip);
  bool attach(std::span<const int> descriptors);
  std::size_t write_queued();
  void drop_sent();
  int fd() const { return fd_.load(std::memory_order_relaxed); }
  /// Updates queued(), which threads without the lock read.
  void note_queued() {
    const std::size_t encrypted = secure_ == nullptr || broken_ ? 0 : secure_->unsent();
    // Without the greeting of the peer it is not known whether all is sent.
    const std::size_t greetings = greeting_left_ + (is_greeted_ ? 0 : 1);
    queued_.store(queue_.size() - sent_ + overtaken_.size() + encrypted + greetings,
                  std::memory_order_relaxed);
  }

  std::atomic<int> fd_;
  SecureStream* secure_ = nullptr;
  bool broken_ = false;  // The peer takes nothing more.
  int problem_ = 0;
  bool closed_ = false;
  bool goes_ahead_ = false;  // In send_ahead().
  bool is_ahead_ = false;    // Nothing but what send_ahead() has put there is queued.
  std::vector<std::byte> queue_;
  std::size_t sent_ = 0;  // How much of queue_ is gone.
  std::list<Attached> attached_;
  bool seals_ = false;
  std::uint64_t next_number_ = 0;  // For the next Seal.
  Resend* resend_ = nullptr;
  Resend::Greeting greeting_;      // For this connection,
  std::size_t greeting_left_ = 0;  // of which so many bytes are not sent.
  bool is_greeted_ = true;         // Nothing but that is sent before.
  Chaos* chaos_ = nullptr;
  std::vector<std::byte> overtaken_;  // A data frame that waits for the one behind it, with chaos.
  std::atomic<std::size_t> queued_{0};  // As these say, for those without the lock.
};

}  // namespace anyccl::link
