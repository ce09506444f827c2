#include "framework/tuning/algorithm_rules.hpp"

#include <algorithm>

#include "base/byte_size.hpp"
#include "base/error.hpp"

namespace anyccl {
namespace {

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (std::size_t end; (end = text.find(at)) != std::string_view::npos;
       text.remove_prefix(end + 1))
    parts.push_back(text.substr(0, end));
  parts.push_back(text);
  return parts;
}

void add_once(std::vector<std::string_view>& names, std::string_view name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

Result<Collective> parse_collective(std::string_view text) {
  std::vector<std::string_view> known;
  for (const Algorithm* a : all_algorithms()) {
    if (name(a->collective) == text) return a->collective;
    add_once(known, name(a->collective));
  }
  return error(Code::invalid_argument, "ANYCCL_ALGO: '{}' is not a collective; there are {}", text,
               fmt::join(known, ", "));
}

/// As the catalog has it.
Result<std::string_view> parse_name(std::optional<Collective> collective, std::string_view text) {
  std::vector<std::string_view> known;
  for (const Algorithm* a : all_algorithms()) {
    if (collective && a->collective != *collective) continue;
    if (a->name == text) return a->name;
    add_once(known, a->name);
  }
  return error(Code::invalid_argument, "ANYCCL_ALGO: '{}' is not an algorithm{}{}; there are {}",
               text, collective ? " of " : "", collective ? name(*collective) : "",
               fmt::join(known, ", "));
}

}  // namespace

Result<AlgorithmRules::Choice> AlgorithmRules::parse_choice(std::optional<Collective> collective,
                                                            std::string_view text) {
  Choice choice{collective, {}};
  choice.excluded = text.starts_with('^');
  if (choice.excluded) text.remove_prefix(1);
  const std::vector<std::string_view> parts = split(text, '@');
  ANYCCL_TRY(choice.algorithm, parse_name(collective, parts[0]));
  if (parts.size() == 1) return choice;
  const std::vector<std::string_view> ends = split(parts[1], '-');
  if (parts.size() > 2 || ends.size() != 2 || (ends[0].empty() && ends[1].empty()))
    return error(Code::invalid_argument,
                 "ANYCCL_ALGO: '{}' has no sizes such as @-4K, @4K-1M or @1M-", text);
  if (!ends[0].empty()) {
    ANYCCL_TRY(choice.from, parse_size(ends[0]));
  }
  if (!ends[1].empty()) {
    ANYCCL_TRY(choice.below, parse_size(ends[1]));
  }
  if (choice.from >= choice.below)
    return error(Code::invalid_argument, "ANYCCL_ALGO: '{}': no size is from {} and below {}", text,
                 ends[0], ends[1]);
  return choice;
}

Result<AlgorithmRules> AlgorithmRules::parse(std::string_view text) {
  AlgorithmRules rules;
  if (text.empty()) return rules;
  for (std::string_view rule : split(text, ';')) {
    std::optional<Collective> collective;
    if (const std::size_t colon = rule.find(':'); colon != std::string_view::npos) {
      ANYCCL_TRY(collective, parse_collective(rule.substr(0, colon)));
      rule.remove_prefix(colon + 1);
    }
    for (const std::string_view choice : split(rule, ',')) {
      ANYCCL_TRY(rules.choices_.emplace_back(), parse_choice(collective, choice));
    }
  }
  return rules;
}

const Algorithm* AlgorithmRules::wanted(Collective collective, std::size_t bytes) const {
  for (const Choice& choice : choices_) {
    if (choice.excluded || !choice.fits(collective, bytes)) continue;
    if (const Algorithm* const found = find_algorithm(collective, choice.algorithm)) return found;
  }
  return nullptr;
}

bool AlgorithmRules::names(Collective collective) const {
  return std::any_of(choices_.begin(), choices_.end(), [&](const Choice& choice) {
    return choice.collective.value_or(collective) == collective &&
           find_algorithm(collective, choice.algorithm) != nullptr;
  });
}

bool AlgorithmRules::excludes(const Algorithm& algorithm, std::size_t bytes) const {
  return std::any_of(choices_.begin(), choices_.end(), [&](const Choice& choice) {
    return choice.excluded && choice.algorithm == algorithm.name &&
           choice.fits(algorithm.collective, bytes);
  });
}

}  // namespace anyccl
