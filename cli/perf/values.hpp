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
  std::size_t count_wrong(const void* data, std::size_t first, std::size_t count,
                          std::uint32_t turn) const;

 private:
  std::vector<std::byte> twice_;  ///< Two periods: from any start, a whole one is contiguous.
  std::size_t element_bytes_;
};

/// A whole number, or a complex number of two.
struct WholeNumber {
  std::int64_t real = 0, imaginary = 0;
};

/// Inputs whose results are known exactly, whatever the order of operations: whole numbers so small
/// that all of them, and what comes between, are exact in the type. A pattern along the elements
/// tells a misplaced or stale element; what differs between ranks, a missing or doubled rank.
class Values {
 public:
  /// Values for an operation that only moves elements.
  explicit Values(const TypeName& type) : Values(type, anycclMax, 1) {}
  /// `ranks`: all whose values an operation reduces.
  Values(const TypeName& type, anycclRedOp_t redop, int ranks);

  Elements of(int rank) const;  ///< One rank's input.
  /// Reduces the inputs of the first `ranks`; avg divides their sum by the number of all ranks.
  Elements result(int ranks) const;

 private:
  enum class Kind : std::uint8_t { ordered, sum, average, product, bits, truth };
  static Kind kind_of(anycclDataType_t type, anycclRedOp_t redop);
  WholeNumber value(int rank, std::size_t position) const;
  WholeNumber summand(int rank, std::size_t position) const;
  WholeNumber factor(int rank, std::size_t position) const;
  WholeNumber combined(WholeNumber a, WholeNumber b) const;
  std::int64_t patterned(std::size_t position) const;
  int shift(int rank) const { return rank % (most_shift_ + 1); }
  int balance(int rank) const;
  template <typename ValueAt>
  Elements elements(ValueAt value_at) const;

  TypeName type_;
  anycclRedOp_t redop_;
  Kind kind_;
  int ranks_;
  int contributors_;  ///< Further ranks add 0: a sum over all of them could not be exact.
  int most_shift_ = 0, most_pattern_ = 0;
};

}  // namespace anyccl::cli
