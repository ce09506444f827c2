#pragma once
// The plans of a communicator depend on these facts. Membership has them; PlanCache and fusion read
// them.

#include <vector>

#include "framework/tuning/tuner.hpp"
#include "platform/transport/publications.hpp"

namespace anyccl {

/// The facts on which the plans of a communicator depend, apart from the call.
struct PlanningFacts {
  Rank rank{0};
  int size = 1;
  std::vector<int> near_of;             ///< As Placement has it.
  TunerPolicy policy;                   ///< How plans are chosen.
  std::size_t line_bytes = kLineBytes;  ///< The most that fits a slot.
  bool fuses = true;                    ///< ANYCCL_FUSION.
  bool network = false;        ///< Some pair of ranks, not only this one's, talks over a network.
  int ranks_per_core = 1;      ///< As Placement has it.
  std::size_t ring_bytes = 0;  ///< The size of the staging ring.
  std::size_t tile_bytes = 0;  ///< In queues of devices: the most of a publication. Else 0.
};

}  // namespace anyccl
