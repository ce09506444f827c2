#pragma once
// Members of a communicator that make another one of some of them tell each other here what it
// takes.

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/process/create.hpp"

namespace anyccl {

/// Why a rank cannot take part, as it tells the others.
struct Problem {
  std::int32_t code = 0;
  char text[256] = {};

  void set(const Status& status);
  /// The error of `call` when `rank` has this problem; ok: it has none.
  Status of(std::string_view call, Rank rank) const;
};

/// What a member tells the others; what else they need, the parent knows.
struct Card {
  std::int32_t color = 0, key = 0;
  Problem problem;
  std::array<char, bootstrap::Hello::kSettings> settings{};  ///< As the hello has them.
};

/// A rank of the parent that is in the new communicator.
struct Member {
  Rank rank;
  const Card* card;
};

/// All but those in `excluded`, a list as anycclCommShrink has it, without cards. Errors: of the
/// list, which other ranks do not see.
Result<std::vector<Member>> members_without(std::span<const int> excluded, const Comm& parent);

/// Nobody waits for a member that cannot come.
Status first_problem(std::string_view call, const std::vector<Member>& members);

/// What this rank needs to take part. Errors: what is wrong with `own` settings or the environment.
Result<InitContext> prepare(const Comm& parent, const Inheritance& inheritance,
                            const CommSettings& own);

/// What a communicator that is made of another has.
CommSettings inherited(const CommSettings& parent, const CommSettings& own);

/// The group of some members, and the place of this rank in it.
struct Part {
  GroupPtr group;
  Rank me{0};
};
/// The group of `members`, in this order; `me` is one of them. Errors: of settings that differ or
/// do not suit so many ranks.
Result<Part> part_of(const Inheritance& parent, const std::vector<Member>& members,
                     const bootstrap::Secret& secret, Rank me, const InitContext& init);

/// The links of `me` to the other `members`, whose ranks they get.
std::vector<PeerLink> links_within(const Inheritance& parent, const std::vector<Member>& members,
                                   Rank me);

}  // namespace anyccl
