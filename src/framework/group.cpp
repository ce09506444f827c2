#include "framework/group.hpp"

#include <algorithm>

namespace anyccl {

void CallGroup::add(std::shared_ptr<Comm> comm, const Call& call) {
  KeptCall kept(call, comm->rank(), comm->size());
  entries_.push_back({std::move(comm), std::move(kept), nullptr});
}

Status CallGroup::run() {
  Status first;
  std::vector<Comm*> comms;
  for (Entry& entry : entries_) {
    auto task = entry.comm->issue(entry.kept.call());
    if (task.ok())
      entry.task = *std::move(task);
    else if (first.ok())
      first = task.status();
    if (std::find(comms.begin(), comms.end(), entry.comm.get()) == comms.end())
      comms.push_back(entry.comm.get());
  }
  const bool crowded = std::any_of(comms.begin(), comms.end(),
                                   [](const Comm* c) { return c->membership().crowded_here; });
  Waiter waiter(crowded);
  const auto open = [&] {
    return std::any_of(entries_.begin(), entries_.end(),
                       [](const Entry& e) { return e.task != nullptr && !e.task->done(); });
  };
  while (open()) {
    bool moved = false;
    for (Comm* comm : comms) moved = comm->progress() || moved;
    if (moved) {
      waiter.reset();
      continue;
    }
    const Waiter::Next next = waiter.next();
    if (next == Waiter::Next::poll) continue;
    for (Comm* comm : comms) comm->examine();
    if (next == Waiter::Next::sleep && comms.size() == 1) comms[0]->sleep_shortly();
  }
  for (const Entry& entry : entries_)
    if (first.ok() && entry.task != nullptr) first = entry.task->status();
  return first;
}

}  // namespace anyccl
