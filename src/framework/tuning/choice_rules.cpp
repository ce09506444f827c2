#include "framework/tuning/choice_rules.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "algorithm/catalog/algorithm.hpp"
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

class Parser {
 public:
  Parser(const ChoiceRules::Vocabulary& vocabulary, std::string_view setting)
      : vocabulary_(vocabulary), setting_(setting) {}

  Result<Collective> collective(std::string_view text) const {
    std::vector<std::string_view> known;
    for (const Algorithm* a : all_algorithms()) {
      const std::string_view candidate = name(a->collective);
      if (candidate == text) return a->collective;
      if (std::find(known.begin(), known.end(), candidate) == known.end())
        known.push_back(candidate);
    }
    return error(Code::invalid_argument, "{}: '{}' is not a collective; there are {}", setting_,
                 text, fmt::join(known, ", "));
  }

  Result<ChoiceRules::Rule> choice(std::optional<Collective> collective,
                                   std::string_view text) const {
    ChoiceRules::Rule rule{collective, {}};
    rule.excluded = text.starts_with('^');
    if (rule.excluded) text.remove_prefix(1);
    const std::vector<std::string_view> parts = split(text, '@');
    ANYCCL_TRY(rule.name, find_name(collective, parts[0]));
    if (parts.size() == 1) return rule;
    const std::vector<std::string_view> ends = split(parts[1], '-');
    if (parts.size() > 2 || ends.size() != 2 || (ends[0].empty() && ends[1].empty()))
      return error(Code::invalid_argument, "{}: '{}' has no sizes such as @-4K, @4K-1M or @1M-",
                   setting_, text);
    if (!ends[0].empty()) {
      ANYCCL_TRY(rule.from, size(ends[0]));
    }
    if (!ends[1].empty()) {
      ANYCCL_TRY(rule.below, size(ends[1]));
    }
    if (rule.from >= rule.below)
      return error(Code::invalid_argument, "{}: '{}': no size is from {} and below {}", setting_,
                   text, ends[0].empty() ? "0" : ends[0], ends[1]);
    return rule;
  }

 private:
  /// As the vocabulary has it.
  Result<std::string_view> find_name(std::optional<Collective> collective,
                                     std::string_view text) const {
    const std::vector<std::string_view> known = vocabulary_.names(collective);
    const auto found = std::find(known.begin(), known.end(), text);
    if (found != known.end()) return *found;
    return error(Code::invalid_argument, "{}: '{}' is not {}{}{}; there are {}", setting_, text,
                 vocabulary_.what, collective ? " of " : "", collective ? name(*collective) : "",
                 fmt::join(known, ", "));
  }
  Result<std::size_t> size(std::string_view text) const {
    Result<std::size_t> bytes = parse_size(text);
    if (bytes.ok()) return bytes;
    return error(Code::invalid_argument, "{}: {}", setting_, bytes.status().message());
  }

  const ChoiceRules::Vocabulary& vocabulary_;
  const std::string_view setting_;
};

}  // namespace

Result<ChoiceRules> ChoiceRules::parse(std::string_view text, const Vocabulary& vocabulary,
                                       std::string_view setting) {
  const Parser parser(vocabulary, setting);
  ChoiceRules rules;
  rules.setting_ = setting;
  if (text.empty()) return rules;
  for (std::string_view rule : split(text, ';')) {
    std::optional<Collective> collective;
    if (const std::size_t colon = rule.find(':'); colon != std::string_view::npos) {
      ANYCCL_TRY(collective, parser.collective(rule.substr(0, colon)));
      rule.remove_prefix(colon + 1);
    }
    for (const std::string_view choice : split(rule, ',')) {
      ANYCCL_TRY(rules.rules_.emplace_back(), parser.choice(collective, choice));
    }
  }
  return rules;
}

}  // namespace anyccl
