#pragma once
// Chaos makes faults on one end of a link, for tests (ANYCCL_CHAOS). Frames are lost, repeated or
// overtaken, bits flip, reads and writes are short or late, and connections end. The outbox and the
// reader call it, and the encryption of a link, if there is one.

#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <span>

#include "base/chaos_plan.hpp"
#include "base/secure_stream.hpp"

namespace anyccl::link {

/// The faults of one end of a link. What happens follows from the seed and from the frames, bytes,
/// reads and writes that went before, not from the time.
///
/// Threads: one at a time, the holder of the link's lock.
class Chaos final : public SecureStream::Wire {
 public:
  explicit Chaos(const ChaosPlan& plan);

  // --- frames -----------------------------------------------------------------------------------
  /// How often the next frame is sent: 0 to 2 times.
  int roll_copies();
  /// Whether the next data frame is overtaken by the one behind it.
  bool is_overtaken() { return frames_.happens(plan_.reorder); }

  // --- bytes ------------------------------------------------------------------------------------
  /// Another connection has taken the place of one that was lost.
  void note_connected();
  /// As sendmsg(2), but may take less, or end the connection.
  ssize_t write(int fd, const msghdr& message);
  /// What `receive` does to `parts`, which become shorter, as readv(2) would.
  template <typename Receive>
  ssize_t read(std::span<iovec> parts, const Receive& receive) {
    if (holds_back()) return errno = EAGAIN, -1;
    shorten(parts);
    const ssize_t n = receive();
    if (n > 0) has_read(parts, static_cast<std::size_t>(n));
    return n;
  }
  /// Under a connection that is encrypted.
  ssize_t send(int fd, std::span<const std::byte> bytes) override;
  ssize_t receive(int fd, std::span<std::byte> into) override;
  /// Whether nothing may be read yet.
  bool holds_back() const;
  /// `bytes` were read into `parts`: may flip bits of them, and delay the next read.
  void has_read(std::span<const iovec> parts, std::size_t bytes);

 private:
  /// Random numbers that differ from those of other dice of the seed (SplitMix64).
  class Dice {
   public:
    explicit Dice(std::uint64_t seed) : state_(seed) {}
    std::uint64_t roll();
    bool happens(double probability);
    /// How many times something does not happen before it does.
    std::uint64_t roll_failures(double probability);

   private:
    std::uint64_t state_;
  };

  std::size_t roll_part_of(std::size_t bytes, Dice& dice);
  void shorten(std::span<iovec> parts);
  void flip_bits(std::span<std::byte> bytes);

  const ChaosPlan plan_;
  Dice frames_, writes_, reads_, flips_, cuts_;
  std::uint64_t until_cut_, until_flip_;              // Bytes.
  bool ended_ = false;                                // The peer takes nothing more.
  std::chrono::steady_clock::time_point readable_{};  // From then on.
};

}  // namespace anyccl::link
