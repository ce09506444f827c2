#include "framework/communicator/pending_operation.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "framework/waiting/interrupt.hpp"

namespace anyccl {
namespace {

std::vector<Comm*> communicators(std::span<const PendingOperation> operations) {
  std::vector<Comm*> comms;
  for (const PendingOperation& pending : operations)
    if (std::find(comms.begin(), comms.end(), pending.comm.get()) == comms.end())
      comms.push_back(pending.comm.get());
  return comms;
}

/// Makes progress in all of them until is_over() or the deadline: an operation of one communicator
/// may be complete at a peer only after one of another is.
template <typename IsOver>
void drive(std::span<Comm* const> comms, Deadline deadline, const IsOver& is_over) {
  Backoff backoff(probe::OversubscriptionMonitor::of_process(),
                  std::any_of(comms.begin(), comms.end(),
                              [](Comm* c) { return c->loop().is_oversubscribed(); }),
                  comms.front()->loop().wait_policy(), 0);
  Interrupt interrupt;
  for (std::size_t turn = 0; !is_over();) {
    bool moved = false;
    for (Comm* comm : comms) moved = comm->loop().progress() || moved;
    if (moved) {
      backoff.reset();
      continue;
    }
    const Backoff::Next next = backoff.next();
    if (next == Backoff::Next::poll) continue;
    if (deadline.passed()) return;
    if (deadline.is_never() && interrupt.is_due() && Interrupt::is_wanted())
      for (Comm* comm : comms) comm->interrupt();
    if (Backoff::checks(next))
      for (Comm* comm : comms) comm->check_peers();
    if (Backoff::sleeps(next) && !is_over()) comms[turn++ % comms.size()]->loop().sleep_briefly();
  }
}

std::size_t first_over(std::span<const PendingOperation> operations) {
  const auto over = std::find_if(operations.begin(), operations.end(),
                                 [](const PendingOperation& one) { return one.is_over(); });
  return static_cast<std::size_t>(over - operations.begin());
}

/// For the trace: a thread of the program begins to wait.
void note_waits(std::span<const PendingOperation> operations) {
  for (const PendingOperation& one : operations) one.comm->note_wait(*one.operation);
}

}  // namespace

Status wait_all(std::span<const PendingOperation> operations, bool noted) {
  const std::vector<Comm*> comms = communicators(operations);
  if (comms.size() > 1) {
    if (noted) note_waits(operations);
    drive(comms, {}, [&] {
      return std::all_of(operations.begin(), operations.end(),
                         [](const PendingOperation& one) { return one.is_over(); });
    });
  }
  Status first;
  for (const PendingOperation& pending : operations) {
    Status status = pending.comm->wait(*pending.operation, {}, noted);
    if (first.ok()) first = std::move(status);
  }
  return first;
}

std::size_t wait_any(std::span<const PendingOperation> operations, Deadline deadline) {
  const std::vector<Comm*> comms = communicators(operations);
  if (first_over(operations) < operations.size() || comms.empty()) return first_over(operations);
  if (comms.size() > 1) {
    note_waits(operations);
    drive(comms, deadline, [&] { return first_over(operations) < operations.size(); });
  } else {
    std::vector<std::shared_ptr<Operation>> all;
    for (const PendingOperation& one : operations) all.push_back(one.operation);
    comms.front()->wait_any(all, deadline);
  }
  while (first_over(operations) == operations.size() && !comms.front()->failure().ok())
    std::this_thread::sleep_for(std::chrono::microseconds(50));  // a device wakes nobody
  return first_over(operations);
}

std::size_t test_any(std::span<const PendingOperation> operations) {
  if (const std::size_t first = first_over(operations); first < operations.size()) return first;
  for (Comm* comm : communicators(operations)) comm->loop().progress();
  return first_over(operations);
}

}  // namespace anyccl
