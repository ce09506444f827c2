#pragma once

#include <bitset>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "algorithm/schedule/contract.hpp"
#include "anyccl/status.hpp"

namespace anyccl::verify {

/// The most ranks of a symbolic run.
inline constexpr std::size_t kMaxRanks = 128;

/// The symbolic value of a chunk: one rank's input, or other terms combined in order. Equal ids are
/// equal bits: two summands commute, more do so only in the first two places.
using TermId = std::uint32_t;

struct Term {
  Origin origin = 0;
  std::uint32_t run = 0;                    ///< Which operation and tile the input is of.
  std::uint32_t roundings = 0;              ///< Sums on the deepest path.
  std::uint32_t first_part = 0, parts = 0;  ///< Of a sum: Terms::parts().
  std::bitset<kMaxRanks> ranks = {};
};

/// Every term once.
class Terms {
 public:
  static constexpr TermId kGarbage = 0;  ///< What nobody wrote.
  TermId input(Rank r, Origin origin, std::uint32_t run);
  /// May reorder `parts`. Errors: internal (a rank counted twice, different origins or runs,
  /// garbage), without a place.
  Result<TermId> combine(Combine how, std::span<TermId> parts);
  const Term& operator[](TermId id) const { return terms_[id]; }
  /// Of a sum, its summands in order; else none.
  std::span<const TermId> parts(TermId id) const {
    return {parts_.data() + terms_[id].first_part, terms_[id].parts};
  }
  std::string text(TermId id) const;  ///< "rank (0+1)+2's chunk 3"

 private:
  TermId intern(const Term& term, std::span<const TermId> parts);
  std::size_t find(const Term& term, std::span<const TermId> parts) const;
  void grow();
  std::string expression(TermId id) const;
  std::vector<Term> terms_ = std::vector<Term>(1);
  std::vector<TermId> parts_;
  std::vector<TermId> table_ = std::vector<TermId>(1024);  // by hash; 0: free
};

}  // namespace anyccl::verify
