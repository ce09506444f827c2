#pragma once
// How the ranks of a group find each other: through the store that torch gives them.

#include <memory>

#include "channel.hpp"
#include "torch.hpp"

namespace anyccl::torch {

struct Channels {
  std::shared_ptr<Channel> collectives, messages;
};
/// Returns when all ranks have come; throws after `timeout`, naming those that have not.
Channels meet(c10d::Store& store, int rank, int size, std::chrono::milliseconds timeout);

}  // namespace anyccl::torch
