#pragma once
// A term says which inputs are in a chunk, and in what order they were added up. The symbolic
// machine (simulate.hpp) makes terms, and the checks compare them with what a collective means.

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

/// The symbolic value of a chunk: one rank's input, or two terms added up in this order.
using TermId = std::uint32_t;

struct Term {
  Origin origin = 0;
  std::uint32_t run = 0;        ///< Which operation and tile the input is of.
  std::uint32_t roundings = 0;  ///< To the type of the elements, on the deepest path.
  TermId left = 0, right = 0;   ///< The parts of a sum; else 0.
  /// A step ends with this sum: it is rounded to the type of the elements, which those inside of a
  /// step are not if that has 16 or 8 bits.
  bool ends_step = false;
  std::bitset<kMaxRanks> ranks = {};
};

/// Every term once.
class Terms {
 public:
  static constexpr TermId kGarbage = 0;  ///< What nobody wrote.
  TermId input(Rank r, Origin origin, std::uint32_t run);
  /// What one step makes of these: they are folded by the aligned tree over their places
  /// (docs/adr/0056), as kernels do. Errors: internal (a rank counted twice, different origins or
  /// runs, garbage), without a place.
  Result<TermId> combine(Combine how, std::span<const TermId> parts);
  const Term& operator[](TermId id) const { return terms_[id]; }

  /// Equal for terms that have the same bits for each type and each operator of anyccl: the two
  /// operands of a sum may be swapped.
  TermId bits_key(TermId id);
  /// The order of the additions alone: without the ends of steps, and of chunk 0 of run 0. Types
  /// that are not rounded between steps get the same function where this is equal.
  TermId order_key(TermId id);
  /// The order that is the aligned tree over these ranks.
  TermId tree(const std::bitset<kMaxRanks>& ranks);
  /// Equal for terms of any Terms whose order is the same up to swapped operands.
  std::string shape_key(TermId id) const;
  std::string text(TermId id) const;  ///< "rank (0+1)+2's chunk 3"; the sum of one step is flat

 private:
  TermId intern(const Term& term);
  TermId add(TermId left, TermId right, bool ends_step);
  TermId fold(std::span<const TermId> parts, bool ends_step);
  std::size_t find(const Term& term) const;
  void grow();
  std::string expression(TermId id) const;
  std::vector<Term> terms_ = std::vector<Term>(1);
  std::vector<TermId> table_ = std::vector<TermId>(1024);  // by hash; 0: free
  std::vector<TermId> bits_, orders_;                      // by id; 0: not asked for yet
};

}  // namespace anyccl::verify
