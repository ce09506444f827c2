#include "algorithm/plan/terms.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace anyccl {
namespace {

enum Kind : std::uint32_t { kInput, kSum, kUnion };

}  // namespace

std::size_t Terms::Hash::operator()(const std::vector<std::uint32_t>& key) const {
  std::uint64_t hash = 1469598103934665603U;
  for (std::uint32_t word : key) hash = (hash ^ word) * 1099511628211U;
  return static_cast<std::size_t>(hash ^ hash >> 32U);
}

TermId Terms::intern(std::vector<std::uint32_t> key, Term term) {
  const auto [it, fresh] = known_.try_emplace(std::move(key), static_cast<TermId>(terms_.size()));
  if (fresh) terms_.push_back(std::move(term));
  return it->second;
}

TermId Terms::input(Rank r, Origin origin, std::uint32_t run) {
  Term term{.origin = origin, .run = run};
  term.ranks.set(uindex(r));
  return intern({kInput, uindex(r), origin, run}, std::move(term));
}

Result<TermId> Terms::combine(Combine how, std::vector<TermId> parts) {
  if (parts.size() == 1) return parts[0];
  const Term& first = terms_[parts[0]];
  Term all{.origin = first.origin, .run = first.run};
  for (TermId p : parts) {
    const Term& t = terms_[p];
    if (p == kGarbage) return error(Code::internal, "adds a chunk that nobody wrote");
    if (t.origin != all.origin || t.run != all.run)
      return error(Code::internal, "adds {} to {}", text(p), text(parts[0]));
    if (how == Combine::sum && (t.ranks & all.ranks).any())
      return error(Code::internal, "counts a rank twice: {} added to {}", text(p), text(parts[0]));
    all.ranks |= t.ranks;
    all.roundings = std::max(all.roundings, t.roundings + 1);
  }
  std::vector<std::uint32_t> key;
  if (how == Combine::sum) {
    if (parts[0] > parts[1]) std::swap(parts[0], parts[1]);
    key = parts;
    key.push_back(kSum);
    all.parts = std::move(parts);
  } else {
    key = {kUnion, all.origin, all.run};
    for (std::size_t r = 0; r < kMaxRanks; ++r)
      if (all.ranks.test(r)) key.push_back(static_cast<std::uint32_t>(r));
    all.roundings = 0;
  }
  return intern(std::move(key), std::move(all));
}

std::string Terms::expression(TermId id) const {
  const Term& t = terms_[id];
  std::vector<std::string> parts;
  for (TermId p : t.parts)
    parts.push_back(terms_[p].parts.empty() ? expression(p) : fmt::format("({})", expression(p)));
  for (std::size_t r = 0; r < kMaxRanks && t.parts.empty(); ++r)
    if (t.ranks.test(r)) parts.push_back(std::to_string(r));
  return fmt::format("{}", fmt::join(parts, "+"));
}

std::string Terms::text(TermId id) const {
  if (id == kGarbage) return "nothing";
  const Term& t = terms_[id];
  return fmt::format("rank {}'s chunk {}{}", expression(id), t.origin,
                     t.run == 0 ? "" : fmt::format(" of run {}", t.run));
}

}  // namespace anyccl
