#include "algorithm/verify/terms.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace anyccl::verify {
namespace {

std::size_t hash(const Term& term, std::span<const TermId> parts) {
  std::uint64_t h = 1469598103934665603U;
  const auto mix = [&h](std::uint64_t word) {
    h = (h ^ word) * 0x9E3779B97F4A7C15U;
    h ^= h >> 29U;
  };
  mix(std::uint64_t{term.run} << 32U | term.origin);
  if (parts.empty()) mix(std::hash<std::bitset<kMaxRanks>>{}(term.ranks));
  for (TermId p : parts) mix(p);
  return static_cast<std::size_t>(h);
}

}  // namespace

// The place in the table of this term, or a free one for it.
std::size_t Terms::find(const Term& term, std::span<const TermId> parts) const {
  std::size_t at = hash(term, parts) & (table_.size() - 1);
  for (; table_[at] != kGarbage; at = (at + 1) & (table_.size() - 1)) {
    const Term& t = terms_[table_[at]];
    const auto known = this->parts(table_[at]);
    if (t.origin == term.origin && t.run == term.run && t.ranks == term.ranks &&
        std::equal(known.begin(), known.end(), parts.begin(), parts.end()))
      break;
  }
  return at;
}

void Terms::grow() {
  table_.assign(table_.size() * 2, kGarbage);
  for (TermId id = 1; id < terms_.size(); ++id) table_[find(terms_[id], parts(id))] = id;
}

TermId Terms::intern(const Term& term, std::span<const TermId> parts) {
  const std::size_t at = find(term, parts);
  if (table_[at] != kGarbage) return table_[at];
  const auto id = static_cast<TermId>(terms_.size());
  terms_.push_back(term);
  terms_.back().first_part = static_cast<std::uint32_t>(parts_.size());
  terms_.back().parts = static_cast<std::uint32_t>(parts.size());
  parts_.insert(parts_.end(), parts.begin(), parts.end());
  table_[at] = id;
  if (terms_.size() * 2 > table_.size()) grow();
  return id;
}

TermId Terms::input(Rank r, Origin origin, std::uint32_t run) {
  Term term{.origin = origin, .run = run};
  term.ranks.set(uindex(r));
  return intern(term, {});
}

Result<TermId> Terms::combine(Combine how, std::span<TermId> parts) {
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
  if (how == Combine::sum) {
    if (parts[0] > parts[1]) std::swap(parts[0], parts[1]);
    return intern(all, parts);
  }
  all.roundings = 0;
  return intern(all, {});
}

std::string Terms::expression(TermId id) const {
  std::vector<std::string> words;
  for (TermId p : parts(id))
    words.push_back(terms_[p].parts == 0 ? expression(p) : fmt::format("({})", expression(p)));
  for (std::size_t r = 0; r < kMaxRanks && terms_[id].parts == 0; ++r)
    if (terms_[id].ranks.test(r)) words.push_back(std::to_string(r));
  return fmt::format("{}", fmt::join(words, "+"));
}

std::string Terms::text(TermId id) const {
  if (id == kGarbage) return "nothing";
  const Term& t = terms_[id];
  return fmt::format("rank {}'s chunk {}{}", expression(id), t.origin,
                     t.run == 0 ? "" : fmt::format(" of run {}", t.run));
}

}  // namespace anyccl::verify
