#pragma once
// Small calls that one kernel of each rank does alone: see DeviceExchange.

#include <cstdint>
#include <vector>

#include "framework/collective/execution.hpp"
#include "framework/device/wires.hpp"

namespace anyccl {

/// What a call is as an exchange: see DeviceExchange.
struct ExchangedCall {
  std::size_t bytes = 0, offset = 0, block = 0;
  bool reduces = false;  ///< The blocks are in scratch memory.

  /// Whether there is one: each rank has something for each other one, and little.
  static bool fits(const PreparedCall& call);
  ExchangedCall(const PreparedCall& call, Rank me, int ranks);
};

/// The exchanges of one rank, one after the other. Threads: one at a time.
class Exchanges {
 public:
  Exchanges(const Wires& wires, Rank me, int ranks)
      : wires_(wires), me_(uindex(me)), ranks_(ranks) {}

  /// Whether an exchange with this number writes all lines, so that none has a number that comes
  /// again.
  static bool fills_lines(std::uint32_t number);
  /// The word that says when the next one has begun in its queue.
  WordOfRank next_begin() const { return word_of(me_, number_ + 1); }
  /// The next one, of this call. `blocks`: scratch memory, for those of all ranks.
  DeviceExchange next(const Call& call, const PreparedCall& prepared, void* blocks);
  /// The words that say when the data of the other ranks is there, of the next one.
  std::vector<WordOfRank> next_waits() const;

 private:
  WordOfRank word_of(std::uint32_t rank, std::uint32_t number) const;

  const Wires& wires_;
  const std::uint32_t me_;
  const int ranks_;
  std::uint32_t number_ = 0;
};

}  // namespace anyccl
