#pragma once
// Groups of different members may have one name: only those meet that mean the same.

#include <map>
#include <string>
#include <vector>

#include "torch.hpp"
#include "waiting.hpp"

namespace anyccl::torch {

/// The members that this process means by the name of a group, for ranks that mean others. As soon
/// as a rank is late, those that wait write theirs to the store, once a second: a key that changes
/// is no remnant of an earlier attempt.
class Meaning {
 public:
  /// Without members of that size nothing is told.
  Meaning(c10d::Store& store, int rank, int size, const std::vector<std::uint64_t>& members);

  /// Where those meet that mean the same.
  std::string place() const;
  /// Writes the members to the store, where other ranks check them, at most once a second. Does not
  /// look whether a rank is late: it is called then.
  void write_members();
  /// Writes them again, once write_members() was called, however often this is. Throws if
  /// `awaited`, or one of the few ranks after it, keeps on writing other members: that rank does
  /// not come.
  void check_members(int awaited);
  /// Deletes the key when all ranks have come. After a failure it stays for other ranks to read.
  void take_back();
  /// Names the ranks that have written other members.
  std::string others() const;

 private:
  struct Seen {
    std::string told;
    int changes = 0;
  };
  std::string key(int rank) const;
  /// Throws once `rank` has written other members several times, or has given up over them; this
  /// rank's last mark says then that it gives up, too.
  void check(int rank);
  /// Returns the text of the error that `rank` means the members `theirs`, and this rank others.
  std::string difference(int rank, const std::string& theirs) const;
  void set(const std::string& mark);

  c10d::Store& store_;
  const int rank_;
  const std::vector<std::uint64_t>& members_;
  std::string text_;
  int told_ = 0;
  Clock::time_point next_;
  std::map<int, Seen> seen_;  ///< The keys of ranks with other members.
};

}  // namespace anyccl::torch
