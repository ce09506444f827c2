#pragma once
// The ranks of a group find each other through the store that torch gives them.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "shared_comm.hpp"
#include "torch.hpp"
#include "waiting.hpp"

namespace anyccl::torch {

struct JoinedGroup {
  std::shared_ptr<SharedComm> comm;
  std::string round;  // equal on all ranks, and different for every group ever made
};
/// Returns when all ranks have come; throws after `timeout`, naming those that have not. Leaves
/// nothing in the store. `members`: what the ranks of the group are called elsewhere, in their
/// order, or nothing. Only those meet that mean the same, though groups of others may have the same
/// name.
JoinedGroup meet(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                 std::chrono::milliseconds timeout, const Numbers& numbers,
                 const std::vector<std::uint64_t>& members);

/// Whether the store has the key; get, set and wait of a store are enough. Throws if the store
/// itself is gone.
bool has_key(c10d::Store& store, const std::string& key);

/// Returns true as soon as the store has the key, false at `deadline`. Looks again and again, as a
/// store is locked while somebody waits in it. `between`: called now and then; what it throws ends
/// the wait, as signals do.
bool wait_for(c10d::Store& store, const std::string& key, Clock::time_point deadline,
              const std::function<void()>& between = {});

/// Deletes the key, if the store can do that.
void delete_key(c10d::Store& store, const std::string& key);

}  // namespace anyccl::torch
