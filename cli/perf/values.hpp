#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "perf/types.hpp"

namespace anyccl::cli {

/// The elements of one buffer, which repeat with a period that no algorithm cuts at, so that they
/// are written and compared at the speed of memory. Each turn starts elsewhere in the period.
class Elements {
 public:
  /// One period, stored as the type stores it.
  Elements(std::vector<std::byte> period, std::size_t element_bytes);

  /// Writes elements [first, first + count) of this turn to `data`.
  void write(void* data, std::size_t first, std::size_t count, std::uint32_t turn) const;
  /// The number of elements at `data` that are not elements [first, first + count) of this turn.
  std::size_t wrong(const void* data, std::size_t first, std::size_t count,
                    std::uint32_t turn) const;

 private:
  std::vector<std::byte> twice_;  ///< Two periods: from any start, a whole one is contiguous.
  std::size_t element_bytes_;
};

/// Inputs whose results are known exactly, whatever the order of summation: element i of rank r is
/// pattern(i) + shift(r), a whole number so small that sums of it are exact in the type. The
/// pattern tells a misplaced or stale element, the shift a missing or doubled rank.
class Values {
 public:
  /// `summands`: the number of ranks whose values are summed; 1 without a sum.
  Values(const TypeName& type, int summands);

  Elements of(int rank) const;    ///< One rank's input.
  Elements sum(int ranks) const;  ///< Over the first `ranks`, of all summands.
  Elements max(int ranks) const;
  Elements min() const;

 private:
  int scale(int rank) const { return rank < contributors_ || contributors_ == 1 ? 1 : 0; }
  int shift(int rank) const { return scale(rank) * (rank % (most_shift_ + 1)); }
  Elements elements(int scale, int offset) const;

  TypeName type_;
  int contributors_;  ///< Further ranks contribute 0: a sum over all of them could not be exact.
  int most_shift_, most_pattern_;
};

}  // namespace anyccl::cli
