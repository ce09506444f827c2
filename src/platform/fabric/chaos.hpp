#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <chrono>
#include <cstdint>
#include <span>

#include "base/chaos_plan.hpp"

namespace anyccl::fabric {

/// The faults of one end of a link. What happens follows from the seed and from the frames, bytes,
/// reads and writes that went before, not from the time.
///
/// Threads: one at a time, the holder of the link's lock.
class Chaos {
 public:
  explicit Chaos(const ChaosPlan& plan);

  // --- frames -----------------------------------------------------------------------------------
  /// How often the next frame is sent: 0 to 2 times.
  int copies();
  /// Whether the next data frame is overtaken by the one behind it.
  bool is_overtaken() { return frames_.happens(plan_.reorder); }

  // --- bytes ------------------------------------------------------------------------------------
  /// As sendmsg(2).
  ssize_t write(int fd, const msghdr& message);
  /// Whether nothing may be read yet.
  bool holds_back() const;
  /// How many of these bytes may be read.
  std::size_t room(std::size_t bytes);
  /// `bytes` were read into `parts`.
  void has_read(std::span<const iovec> parts, std::size_t bytes);

 private:
  /// Random numbers that differ from those of other dice of the seed (SplitMix64).
  class Dice {
   public:
    explicit Dice(std::uint64_t seed) : state_(seed) {}
    std::uint64_t roll();
    bool happens(double probability);
    /// How many times something does not happen before it does.
    std::uint64_t failures(double probability);

   private:
    std::uint64_t state_;
  };

  std::size_t some_of(std::size_t bytes, Dice& dice);
  void flip_bits(std::span<std::byte> bytes);

  const ChaosPlan plan_;
  Dice frames_, writes_, reads_, flips_;
  std::uint64_t until_cut_, until_flip_;              // Bytes.
  bool ended_ = false;                                // The peer takes nothing more.
  std::chrono::steady_clock::time_point readable_{};  // From then on.
};

}  // namespace anyccl::fabric
