#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "platform/transport/transport.hpp"

namespace anyccl {

/// Puts transports of one communicator around these, which do the same, except that this process kills itself (SIGKILL)
/// instead of publication or message fragment number `dies_at`, from 1, counted over all of them. For tests: a rank that dies
/// at each step.
void make_mortal(std::vector<std::unique_ptr<Transport>>& transports, std::uint64_t dies_at);

}  // namespace anyccl
