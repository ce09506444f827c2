#pragma once
// Groups of different members may have one name: only those meet that mean the same.

#include <map>
#include <string>
#include <vector>

#include "torch.hpp"
#include "waiting.hpp"

namespace anyccl::torch {

/// What this process means by a group of a name, for others that mean another one. As soon as
/// somebody is late, a rank tells it in the store, once a second: what is told again is no remnant
/// of an earlier attempt.
class Meaning {
 public:
  /// Without members of that size nothing is told.
  Meaning(c10d::Store& store, int rank, int size, const std::vector<std::uint64_t>& members);

  /// Where those meet that mean the same.
  std::string place() const;
  /// To be called as soon as somebody is late.
  void tell();
  /// To be called again and again; it does nothing before that. Throws if `awaited`, or one of the
  /// few ranks after it, keeps on telling that it means something else: it does not come.
  void look(int awaited);
  /// To be called when all have come. After a failure others read what was told.
  void take_back();
  /// Says who means something else, as far as they have been told.
  std::string others() const;

 private:
  struct Seen {
    std::string told;
    int changes = 0;
  };
  std::string key(int rank) const;
  void check(int rank);
  std::string difference(int rank, const std::string& theirs) const;
  void set(const std::string& mark);

  c10d::Store& store_;
  const int rank_;
  const std::vector<std::uint64_t>& members_;
  std::string text_;
  int told_ = 0;
  Clock::time_point next_;
  std::map<int, Seen> seen_;  ///< What ranks tell that mean something else.
};

}  // namespace anyccl::torch
