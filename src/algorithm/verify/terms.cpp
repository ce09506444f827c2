#include "algorithm/verify/terms.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "base/error.hpp"

namespace anyccl::verify {
namespace {

std::size_t hash(const Term& term) {
  std::uint64_t h = 1469598103934665603U;
  const auto mix = [&h](std::uint64_t word) {
    h = (h ^ word) * 0x9E3779B97F4A7C15U;
    h ^= h >> 29U;
  };
  mix(std::uint64_t{term.run} << 32U | term.origin);
  if (term.left == Terms::kGarbage) mix(std::hash<std::bitset<kMaxRanks>>{}(term.ranks));
  mix(std::uint64_t{term.left} << 32U | term.right);
  mix(term.ends_step ? 1 : 0);
  return static_cast<std::size_t>(h);
}

bool same(const Term& a, const Term& b) {
  return a.origin == b.origin && a.run == b.run && a.left == b.left && a.right == b.right &&
         a.ends_step == b.ends_step && a.ranks == b.ranks;
}

TermId& at(std::vector<TermId>& known, TermId id) {
  if (known.size() <= id) known.resize(id + 1);
  return known[id];
}

}  // namespace

// The place in the table of this term, or a free one for it.
std::size_t Terms::find(const Term& term) const {
  std::size_t at = hash(term) & (table_.size() - 1);
  while (table_[at] != kGarbage && !same(terms_[table_[at]], term))
    at = (at + 1) & (table_.size() - 1);
  return at;
}

void Terms::grow() {
  table_.assign(table_.size() * 2, kGarbage);
  for (TermId id = 1; id < terms_.size(); ++id) table_[find(terms_[id])] = id;
}

TermId Terms::intern(const Term& term) {
  const std::size_t at = find(term);
  if (table_[at] != kGarbage) return table_[at];
  const auto id = static_cast<TermId>(terms_.size());
  terms_.push_back(term);
  table_[at] = id;
  if (terms_.size() * 2 > table_.size()) grow();
  return id;
}

TermId Terms::input(Rank r, Origin origin, std::uint32_t run) {
  Term term{.origin = origin, .run = run};
  term.ranks.set(uindex(r));
  return intern(term);
}

TermId Terms::add(TermId left, TermId right, bool ends_step) {
  const Term &a = terms_[left], &b = terms_[right];
  return intern({.origin = a.origin,
                 .run = a.run,
                 .roundings = std::max(a.roundings, b.roundings) + (ends_step ? 1 : 0),
                 .left = left,
                 .right = right,
                 .ends_step = ends_step,
                 .ranks = a.ranks | b.ranks});
}

TermId Terms::fold(std::span<const TermId> parts, bool ends_step) {
  if (parts.size() == 1) return parts[0];
  const std::size_t middle = std::bit_floor(parts.size() - 1);
  const TermId left = fold(parts.first(middle), false);
  return add(left, fold(parts.subspan(middle), false), ends_step);
}

Result<TermId> Terms::combine(Combine how, std::span<const TermId> parts) {
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
  }
  return how == Combine::sum ? fold(parts, true) : intern(all);
}

TermId Terms::bits_key(TermId id) {
  if (const TermId known = at(bits_, id); known != kGarbage) return known;
  const Term t = terms_[id];
  TermId result = id;
  if (t.left != kGarbage) {
    const TermId a = bits_key(t.left), b = bits_key(t.right);
    result = add(std::min(a, b), std::max(a, b), t.ends_step);
  }
  return at(bits_, id) = result;
}

TermId Terms::order_key(TermId id) {
  if (const TermId known = at(orders_, id); known != kGarbage) return known;
  const Term t = terms_[id];
  TermId result = kGarbage;
  if (t.left == kGarbage) {
    result = intern({.ranks = t.ranks});
  } else {
    const TermId left = order_key(t.left);
    result = add(left, order_key(t.right), false);
  }
  return at(orders_, id) = result;
}

TermId Terms::tree(const std::bitset<kMaxRanks>& ranks) {
  std::vector<TermId> inputs;
  for (std::size_t r = 0; r < kMaxRanks; ++r)
    if (ranks.test(r)) inputs.push_back(input(Rank(static_cast<int>(r)), 0, 0));
  return fold(inputs, false);
}

std::string Terms::expression(TermId id) const {
  const Term& t = terms_[id];
  if (t.left != kGarbage) {
    const auto operand = [this](TermId of) {
      return terms_[of].ends_step ? fmt::format("({})", expression(of)) : expression(of);
    };
    return operand(t.left) + "+" + operand(t.right);
  }
  std::vector<std::string> words;
  for (std::size_t r = 0; r < kMaxRanks; ++r)
    if (t.ranks.test(r)) words.push_back(std::to_string(r));
  return fmt::format("{}", fmt::join(words, "+"));
}

std::string Terms::shape_key(TermId id) const {
  if (terms_[id].left == kGarbage) return expression(id);
  std::string a = shape_key(terms_[id].left), b = shape_key(terms_[id].right);
  if (b < a) std::swap(a, b);
  return fmt::format("({}+{})", a, b);
}

std::string Terms::text(TermId id) const {
  if (id == kGarbage) return "nothing";
  const Term& t = terms_[id];
  return fmt::format("rank {}'s chunk {}{}", expression(id), t.origin,
                     t.run == 0 ? "" : fmt::format(" of run {}", t.run));
}

}  // namespace anyccl::verify
