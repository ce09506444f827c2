#pragma once
// Settings that choose algorithms and protocols have one grammar, which is parsed here.
// AlgorithmRules and ProtocolRules use it.

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "algorithm/schedule/contract.hpp"
#include "anyccl/status.hpp"

namespace anyccl {

/// What a setting says about names by collective and size:
///
///     rules  = rule { ";" rule }
///     rule   = [ collective ":" ] choice { "," choice }
///     choice = [ "^" ] name [ "@" sizes ]
///     sizes  = from "-" [ below ] | "-" below        as 4K, 1M, 2G
///
/// Sizes are bytes as the tuner counts them: of the vector, or of one block.
class ChoiceRules {
 public:
  /// The names that are allowed.
  struct Vocabulary {
    std::string_view what;  ///< "an algorithm", for messages.
    /// All names, each once; of one collective, if there is one. They live for ever.
    std::vector<std::string_view> (*names)(std::optional<Collective> collective);
  };
  struct Rule {
    std::optional<Collective> collective;  ///< Absent: all that have something of that name.
    std::string_view name;                 ///< As the vocabulary has it.
    bool excluded = false;
    std::size_t from = 0, below = ~std::size_t{0};  ///< Bytes.

    bool fits(Collective called, std::size_t bytes) const {
      return (!collective || *collective == called) && bytes >= from && bytes < below;
    }
    /// Whether it is for every collective and size.
    bool is_plain() const { return !collective && from == 0 && below == ~std::size_t{0}; }
  };

  /// `setting`: its name, which lives for ever. Errors: invalid_argument, with the setting, the
  /// place that is wrong and what is allowed there.
  static Result<ChoiceRules> parse(std::string_view text, const Vocabulary& vocabulary,
                                   std::string_view setting);

  std::span<const Rule> all() const { return rules_; }
  bool empty() const { return rules_.empty(); }
  /// The setting that they come from.
  std::string_view setting() const { return setting_; }

 private:
  std::vector<Rule> rules_;
  std::string_view setting_;
};

}  // namespace anyccl
