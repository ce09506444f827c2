#include "framework/communicator/pending_operation.hpp"

#include <algorithm>
#include <vector>

namespace anyccl {
namespace {

std::vector<Comm*> communicators(std::span<const PendingOperation> operations) {
  std::vector<Comm*> comms;
  for (const PendingOperation& pending : operations)
    if (std::find(comms.begin(), comms.end(), pending.comm.get()) == comms.end())
      comms.push_back(pending.comm.get());
  return comms;
}

/// An operation of one communicator may be complete at a peer only after one of another is.
void drive(std::span<Comm* const> comms, std::span<const PendingOperation> operations) {
  Backoff backoff(
      probe::OversubscriptionMonitor::of_process(),
      std::any_of(comms.begin(), comms.end(), [](const Comm* c) { return c->is_oversubscribed(); }),
      comms.front()->wait_policy(), 0);
  const auto open = [&] {
    return std::any_of(operations.begin(), operations.end(),
                       [](const PendingOperation& pending) { return !pending.operation->done(); });
  };
  for (std::size_t turn = 0; open();) {
    bool moved = false;
    for (Comm* comm : comms) moved = comm->progress() || moved;
    if (moved) {
      backoff.reset();
      continue;
    }
    const Backoff::Next next = backoff.next();
    if (next == Backoff::Next::poll) continue;
    if (Backoff::checks(next))
      for (Comm* comm : comms) comm->check_peers();
    if (Backoff::sleeps(next) && open()) comms[turn++ % comms.size()]->sleep_briefly();
  }
}

}  // namespace

Status wait_all(std::span<const PendingOperation> operations) {
  const std::vector<Comm*> comms = communicators(operations);
  if (comms.size() > 1) drive(comms, operations);
  Status first;
  for (const PendingOperation& pending : operations) {
    Status status = pending.comm->wait(*pending.operation);
    if (first.ok()) first = std::move(status);
  }
  return first;
}

}  // namespace anyccl
