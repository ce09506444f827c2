#pragma once
// The ranks of a group find each other through the store that torch gives them.

#include <memory>

#include "shared_comm.hpp"
#include "torch.hpp"

namespace anyccl::torch {

struct JoinedGroup {
  std::shared_ptr<SharedComm> comm;
  std::string round;  // equal on all ranks, and different for every group ever made
};
/// Returns when all ranks have come; throws after `timeout`, naming those that have not. Leaves
/// nothing in the store.
JoinedGroup meet(c10d::Store& store, int rank, int size, std::chrono::milliseconds timeout,
                 const Numbers& numbers);

/// Deletes the key, if the store can do that.
void forget(c10d::Store& store, const std::string& key);

}  // namespace anyccl::torch
