#pragma once

#include "adapter/init_context.hpp"
#include "adapter/runtime.hpp"
#include "platform/bootstrap/connect.hpp"
#include "platform/bootstrap/join.hpp"

namespace anyccl {

/// Connects the members of `group`, of which this rank is `me`, and makes a communicator of them.
/// `watch`: as connect_all() has it.
Result<CommPtr> create(InitContext& init, const bootstrap::Group& group, Rank me,
                       std::size_t most_ring_bytes = kAnyRing, const bootstrap::Watch& watch = {});

/// The secret that only the members of `comm` know, whose handle the caller keeps alive.
bootstrap::Secret secret_of(const Comm& comm);

}  // namespace anyccl
