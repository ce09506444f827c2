#pragma once
// The ranks of a group find each other through the store that torch gives them.

#include <memory>

#include "shared_comm.hpp"
#include "torch.hpp"

namespace anyccl::torch {

struct SharedComms {
  std::shared_ptr<SharedComm> collectives, messages;
  std::string round;  // equal on all ranks, and different for every group ever made
};
/// Returns when all ranks have come; throws after `timeout`, naming those that have not. Leaves
/// nothing in the store.
SharedComms meet(c10d::Store& store, int rank, int size, std::chrono::milliseconds timeout);

/// Deletes the key, if the store can do that.
void forget(c10d::Store& store, const std::string& key);

}  // namespace anyccl::torch
