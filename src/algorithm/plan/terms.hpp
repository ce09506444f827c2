#pragma once

#include <bitset>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "algorithm/schedule/contract.hpp"
#include "anyccl/status.hpp"

namespace anyccl {

/// Symbolic runs know so many ranks.
inline constexpr std::size_t kMaxRanks = 128;

/// The symbolic value of a chunk: one rank's input, or other terms combined in order. Equal ids are
/// equal bits: two summands commute, more do so only in the first two places.
using TermId = std::uint32_t;

struct Term {
  Origin origin = 0;
  std::uint32_t run = 0;        ///< Which operation and tile the input is of.
  std::uint32_t roundings = 0;  ///< Sums on the deepest path.
  std::bitset<kMaxRanks> ranks = {};
  std::vector<TermId> parts = {};  ///< Of a sum, in order.
};

/// Every term once.
class Terms {
 public:
  static constexpr TermId kGarbage = 0;  ///< What nobody wrote.
  TermId input(Rank r, Origin origin, std::uint32_t run);
  /// Errors: internal (a rank counted twice, different origins or runs, garbage), without a place.
  Result<TermId> combine(Combine how, std::vector<TermId> parts);
  const Term& operator[](TermId id) const { return terms_[id]; }
  std::string text(TermId id) const;  ///< "rank (0+1)+2's chunk 3"

 private:
  struct Hash {
    std::size_t operator()(const std::vector<std::uint32_t>& key) const;
  };
  TermId intern(std::vector<std::uint32_t> key, Term term);
  std::string expression(TermId id) const;
  std::vector<Term> terms_ = std::vector<Term>(1);
  std::unordered_map<std::vector<std::uint32_t>, TermId, Hash> known_;
};

}  // namespace anyccl
