#pragma once
// Users choose algorithms by rules of collective and size, of which the first that fits decides.
// The tuner asks them.

#include <functional>

#include "framework/tuning/choice_rules.hpp"
#include "framework/tuning/tuner_query.hpp"

namespace anyccl {

/// What a user says about the choice of algorithms, as ANYCCL_ALGO does, by ChoiceRules.
///
/// "ring": ring, for the collectives that have it.
/// "all_reduce:one_shot@-4K,ring@1M-;broadcast:^flat": for all_reduce one_shot below 4 KiB and ring
/// from 1 MiB on; for broadcast anything but flat. The first choice that fits and that the ranks
/// can do decides.
class AlgorithmRules {
 public:
  /// As ChoiceRules::parse().
  static Result<AlgorithmRules> parse(std::string_view text,
                                      std::string_view setting = "ANYCCL_ALGO");

  /// The algorithm that such calls must have: the first that is named, is not `barred` and can do
  /// this shape in the order that is needed; if none can, the first that can do it in another
  /// order, and then the first that is named. Null: any.
  const Algorithm* wanted(
      const TunerQuery& query, const std::function<bool(const Algorithm&)>& barred =
                                   [](const Algorithm&) { return false; }) const;
  /// Whether they say anything about its algorithms.
  bool names(Collective collective) const;
  /// Whether they name, for all collectives, only algorithms that this one does not have.
  bool misses(Collective collective) const;
  /// Whether calls of this size must not have it.
  bool excludes(const Algorithm& algorithm, std::size_t bytes) const;
  /// The name of the setting.
  std::string_view setting() const { return rules_.setting(); }

 private:
  ChoiceRules rules_;
};

}  // namespace anyccl
