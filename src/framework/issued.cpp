#include "framework/issued.hpp"

#include <algorithm>
#include <vector>

namespace anyccl {
namespace {

std::vector<Comm*> communicators(std::span<const Issued> operations) {
  std::vector<Comm*> comms;
  for (const Issued& operation : operations)
    if (std::find(comms.begin(), comms.end(), operation.comm.get()) == comms.end())
      comms.push_back(operation.comm.get());
  return comms;
}

/// An operation of one communicator may be complete at a peer only after one of another is.
void drive(std::span<Comm* const> comms, std::span<const Issued> operations) {
  Waiter waiter(
      std::any_of(comms.begin(), comms.end(), [](const Comm* c) { return c->is_crowded(); }));
  const auto open = [&] {
    return std::any_of(operations.begin(), operations.end(),
                       [](const Issued& operation) { return !operation.task->done(); });
  };
  for (std::size_t turn = 0; open();) {
    bool moved = false;
    for (Comm* comm : comms) moved = comm->progress() || moved;
    if (moved) {
      waiter.reset();
      continue;
    }
    const Waiter::Next next = waiter.next();
    if (next == Waiter::Next::poll) continue;
    for (Comm* comm : comms) comm->check_peers();
    if (next == Waiter::Next::sleep && open()) comms[turn++ % comms.size()]->rest();
  }
}

}  // namespace

Status wait_all(std::span<const Issued> operations) {
  const std::vector<Comm*> comms = communicators(operations);
  if (comms.size() > 1) drive(comms, operations);
  Status first;
  for (const Issued& operation : operations) {
    Status status = operation.comm->wait(*operation.task);
    if (first.ok()) first = std::move(status);
  }
  return first;
}

}  // namespace anyccl
