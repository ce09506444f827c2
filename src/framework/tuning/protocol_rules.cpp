#include "framework/tuning/protocol_rules.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"

namespace anyccl {
namespace {

std::vector<std::string_view> protocol_names(std::optional<Collective>) {
  return {kProtocolNames.begin(), kProtocolNames.end()};
}

Protocol protocol_of(const ChoiceRules::Rule& rule) {
  return static_cast<Protocol>(std::find(kProtocolNames.begin(), kProtocolNames.end(), rule.name) -
                               kProtocolNames.begin());
}

}  // namespace

Result<ProtocolRules> ProtocolRules::parse(std::string_view text, std::string_view setting) {
  ProtocolRules rules;
  ANYCCL_TRY(rules.rules_, ChoiceRules::parse(text, {"a protocol", protocol_names}, setting));
  return rules;
}

std::optional<Protocol> ProtocolRules::wanted(Collective collective, std::size_t bytes,
                                              Protocols allowed) const {
  for (const ChoiceRules::Rule& rule : rules_.all())
    if (!rule.excluded && rule.fits(collective, bytes) && allowed.has(protocol_of(rule)))
      return protocol_of(rule);
  return std::nullopt;
}

Protocols ProtocolRules::excluded(Collective collective, std::size_t bytes) const {
  Protocols found;
  for (const ChoiceRules::Rule& rule : rules_.all())
    if (rule.excluded && rule.fits(collective, bytes)) found.add(protocol_of(rule));
  return found;
}

std::optional<Protocol> ProtocolRules::of_messages() const {
  for (const ChoiceRules::Rule& rule : rules_.all())
    if (!rule.excluded && rule.is_plain()) return protocol_of(rule);
  return std::nullopt;
}

Result<ProtocolChoice> choose_protocols(Collective collective, std::size_t bytes,
                                        std::span<const ProtocolRules* const> rules) {
  ProtocolChoice choice;
  std::vector<std::string_view> excluding;
  for (const ProtocolRules* one : rules) {
    if (const auto wanted = one->wanted(collective, bytes, choice.allowed))
      return ProtocolChoice{Protocols::only(*wanted), one->setting()};
    const Protocols excluded = one->excluded(collective, bytes);
    choice.allowed = choice.allowed.without(excluded);
    if (!excluded.none()) choice.rule = one->setting(), excluding.push_back(one->setting());
  }
  if (!choice.allowed.none()) return choice;
  return error(Code::unsupported, "{} {} no protocol for {} of {} bytes",
               fmt::join(excluding, " and "), excluding.size() == 1 ? "leaves" : "leave",
               name(collective), bytes);
}

}  // namespace anyccl
