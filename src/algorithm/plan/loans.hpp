#pragma once
// Which memory a rank may lend to its peers. Private to plan/.

#include <vector>

#include "algorithm/plan/uses.hpp"
#include "algorithm/plan/wires.hpp"

namespace anyccl {

/// Finds out whether the memory that a rank publishes stays as it is until it has been read.
class Loans {
 public:
  /// `wires`: of all ranks, by rank. All are borrowed.
  Loans(const Schedule& mine, const Wires& my_wires, const std::vector<Wires>& wires,
        const Uses& uses)
      : mine_(mine), my_wires_(my_wires), wires_(wires), uses_(uses) {}

  /// Whether peers may read pieces first .. first + pieces - 1 of send `at` where they lie (without
  /// stride: all peers read piece 0): each cell is written no more, or only by what its readers
  /// published after they had read it.
  bool may_lend(std::uint32_t at, std::uint32_t first, std::uint32_t pieces) const;

 private:
  bool is_read_before(std::uint32_t write, std::uint32_t cell, std::uint32_t at,
                      std::uint32_t entry) const;

  const Schedule& mine_;
  const Wires& my_wires_;
  const std::vector<Wires>& wires_;
  const Uses& uses_;
};

}  // namespace anyccl
