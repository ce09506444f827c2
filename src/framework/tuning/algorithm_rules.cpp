#include "framework/tuning/algorithm_rules.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace anyccl {
namespace {

std::vector<std::string_view> algorithm_names(std::optional<Collective> collective) {
  std::vector<std::string_view> known;
  for (const Algorithm* a : all_algorithms())
    if ((!collective || a->collective == *collective) &&
        std::find(known.begin(), known.end(), a->name) == known.end())
      known.push_back(a->name);
  return known;
}

}  // namespace

Result<AlgorithmRules> AlgorithmRules::parse(std::string_view text, std::string_view setting) {
  AlgorithmRules rules;
  ANYCCL_TRY(rules.rules_, ChoiceRules::parse(text, {"an algorithm", algorithm_names}, setting));
  return rules;
}

const Algorithm* AlgorithmRules::wanted(const TunerQuery& query,
                                        const std::function<bool(const Algorithm&)>& barred) const {
  const Algorithm* first = nullptr;
  for (const ChoiceRules::Rule& rule : rules_.all()) {
    if (rule.excluded || !rule.fits(query.shape.collective, query.bytes)) continue;
    const Algorithm* const found = find_algorithm(query.shape.collective, rule.name);
    if (found == nullptr || barred(*found)) continue;
    const bool possible = found->supports(query.shape);
    if (possible && meets(*found, query.shape, query.need)) return found;
    if (first == nullptr || (possible && !first->supports(query.shape))) first = found;
  }
  return first;
}

bool AlgorithmRules::names(Collective collective) const {
  const auto all = rules_.all();
  return std::any_of(all.begin(), all.end(), [&](const ChoiceRules::Rule& rule) {
    return rule.collective.value_or(collective) == collective &&
           find_algorithm(collective, rule.name) != nullptr;
  });
}

bool AlgorithmRules::misses(Collective collective) const {
  const auto all = rules_.all();
  return !names(collective) && std::any_of(all.begin(), all.end(), [](const auto& rule) {
    return !rule.collective && !rule.excluded;
  });
}

bool AlgorithmRules::excludes(const Algorithm& algorithm, std::size_t bytes) const {
  const auto all = rules_.all();
  return std::any_of(all.begin(), all.end(), [&](const ChoiceRules::Rule& rule) {
    return rule.excluded && rule.name == algorithm.name && rule.fits(algorithm.collective, bytes);
  });
}

}  // namespace anyccl
