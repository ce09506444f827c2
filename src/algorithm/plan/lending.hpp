#pragma once
// Which memory a rank may lend to its peers. Private to plan/.

#include <vector>

#include "algorithm/plan/liveness.hpp"
#include "algorithm/plan/matching.hpp"

namespace anyccl {

/// Finds out whether the memory that a rank publishes stays as it is until it has been read.
class Lending {
 public:
  /// `matchings`: of all ranks, by rank. All are borrowed.
  Lending(const Schedule& mine, const Matching& my_matching, const std::vector<Matching>& matchings,
          const Liveness& liveness)
      : mine_(mine), my_matching_(my_matching), matchings_(matchings), liveness_(liveness) {}

  /// Whether peers may read pieces first .. first + pieces - 1 of send `at` where they lie (without
  /// stride: all peers read piece 0): each cell is written no more, or only by what its readers
  /// published after they had read it.
  bool may_lend(std::uint32_t at, std::uint32_t first, std::uint32_t pieces) const;

 private:
  bool is_read_before(std::uint32_t write, std::uint32_t cell, std::uint32_t at,
                      std::uint32_t entry) const;

  const Schedule& mine_;
  const Matching& my_matching_;
  const std::vector<Matching>& matchings_;
  const Liveness& liveness_;
};

}  // namespace anyccl
