#pragma once
// By how much sums of floats may be off, whatever the order of additions. docs/adr/0060 derives it.

#include <cstddef>
#include <functional>
#include <string>

#include "anyccl/types.hpp"

namespace anyccl {

using RankNamer = std::function<std::string(Rank)>;

/// How far rounding moves each element of a result: by at most `by_terms` times the sum of its
/// terms' magnitudes, `by_result` times its own, and `least`, together.
struct Roundings {
  double by_terms = 0, by_result = 0, least = 0;
  /// Sums of magnitudes from here on may overflow.
  double overflow = 0;
  /// Terms below that may be missing in squares.
  double vanishing = 0;
  double factor = 1;  ///< What the sum is multiplied by, for an average.
  double ranks = 1;   ///< Whose sums are added up.
};

/// How a call adds up.
struct Additions {
  int ranks = 1;         ///< Or leaves, where a rank has several.
  bool is_tree = false;  ///< Proved to be the aligned tree and, of small types, to round once.
  bool is_average = false, is_multiplied = false, is_complex = false;
};

/// The roundings of sums in `sum` whose results are rounded to `output`, if that is another type.
Roundings roundings_of(DType sum, DType output, const Additions& additions);

/// What one lane of `rows` elements may be off by, of `lanes` in all: with a probability of 1 -
/// 1e-9 no lane of a right result is. `terms`: the sum of the ranks' norms, `result`: the norm of
/// the result.
double tolerance(const Roundings& roundings, std::size_t rows, double lanes, double terms,
                 double result);

}  // namespace anyccl
