#pragma once
// The root server enters the hello of each rank that joins into a member table, until all ranks of
// the group are there. The table refuses ranks that do not fit together, and names those that are
// missing. It has no lock: only the thread of the root server uses it.

#include <optional>
#include <vector>

#include "platform/bootstrap/group/hello.hpp"

namespace anyccl::bootstrap {

/// The ranks that have joined a group. The first to join gives their number.
class MemberTable {
 public:
  /// Errors, each of which is the end of the group and goes to all members: another size, settings
  /// or version than the first one has, a rank that is there already, what check_hello() finds.
  Status add(const Hello& hello);
  /// How many ranks there are to be; 0 before the first has joined.
  std::size_t size() const { return members_.size(); }
  std::size_t joined() const { return joined_; }
  bool complete() const { return joined_ > 0 && joined_ == members_.size(); }
  /// The hello of `rank`; null if it has not joined.
  const Hello* find(std::uint32_t rank) const {
    return rank < members_.size() && members_[rank] ? &*members_[rank] : nullptr;
  }
  /// "2 of 4 ranks joined within 60 s; missing: 1, 3"
  Status incomplete_error(double seconds) const;
  /// When complete: every rank's hello, in order.
  std::vector<Hello> hellos() const;

 private:
  std::vector<std::optional<Hello>> members_;
  std::size_t joined_ = 0;
  std::optional<Hello> first_;
};

/// "1, 3, 4 and 12 more"
std::string list_ranks(const std::vector<std::size_t>& ranks);

}  // namespace anyccl::bootstrap
