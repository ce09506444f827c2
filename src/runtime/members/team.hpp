#pragma once
// A communicator gets a slice for each further thread of AllReducePart.

#include "framework/communicator/team.hpp"

namespace anyccl {

/// Makes `team` ready for Team::run() by `threads` threads of each rank. Collective over its
/// communicator. Errors: invalid_usage where ranks want different numbers; those of split().
Status grow(Team& team, int threads);

}  // namespace anyccl
