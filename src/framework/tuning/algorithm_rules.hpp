#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "algorithm/catalog/algorithm.hpp"
#include "anyccl/status.hpp"

namespace anyccl {

/// What ANYCCL_ALGO says about the choice of algorithms:
///
///     rules  = rule { ";" rule }
///     rule   = [ collective ":" ] choice { "," choice }
///     choice = [ "^" ] algorithm [ "@" sizes ]
///     sizes  = from "-" [ below ] | "-" below        as 4K, 1M, 2G
///
/// "ring": ring, for the collectives that have it. "all_reduce:one_shot@-4K,ring@1M-;broadcast:^flat":
/// for all_reduce one_shot below 4 KiB and ring from 1 MiB on; for broadcast anything but flat. The
/// first choice that fits decides. Sizes are bytes as the tuner counts them: of the vector, or of one
/// block.
class AlgorithmRules {
 public:
  /// Errors: invalid_argument, with the place that is wrong and what is allowed there.
  static Result<AlgorithmRules> parse(std::string_view text);

  /// The algorithm that calls of this size must have; null: any.
  const Algorithm* wanted(Collective collective, std::size_t bytes) const;
  /// Whether they say anything about its algorithms.
  bool names(Collective collective) const;
  /// Whether calls of this size must not have it.
  bool excludes(const Algorithm& algorithm, std::size_t bytes) const;

 private:
  struct Choice {
    std::optional<Collective> collective;  ///< Absent: all that have an algorithm of that name.
    std::string_view algorithm;            ///< Its name in the catalog.
    bool excluded = false;
    std::size_t from = 0, below = ~std::size_t{0};  ///< Bytes.

    bool fits(Collective called, std::size_t bytes) const {
      return (!collective || *collective == called) && bytes >= from && bytes < below;
    }
  };
  static Result<Choice> parse_choice(std::optional<Collective> collective, std::string_view text);

  std::vector<Choice> choices_;
};

}  // namespace anyccl
