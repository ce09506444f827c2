#include "framework/stream/group.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace anyccl {

void CallGroup::add(const std::shared_ptr<Comm>& comm, const Call& call,
                    std::shared_ptr<HostStream> stream) {
  if (comms_.empty() || comms_.back() != comm) comms_.push_back(comm);
  entries_.emplace_back(*comm, call, std::move(stream));
}

/// One for each stream.
Result<std::vector<Batch>> CallGroup::make_batches() const {
  std::vector<Batch> batches;
  for (const Entry& entry : entries_) {
    const auto same = [&](const Batch& batch) { return batch.stream() == entry.stream.get(); };
    if (entry.stream == nullptr || std::any_of(batches.begin(), batches.end(), same)) continue;
    ANYCCL_TRY(Batch batch, Batch::make(entry.stream, entries_.size()));
    batches.push_back(std::move(batch));
  }
  return batches;
}

Status CallGroup::run() {
  if (entries_.empty()) return {};
  const bool together =
      comms_.size() == 1 && std::all_of(entries_.begin(), entries_.end(),
                                        [](const Entry& e) { return e.stream == nullptr; });
  Status status = together ? run_in_one_communicator() : issue_and_wait();
  entries_.clear();
  comms_.clear();
  return status;
}

Status CallGroup::run_in_one_communicator() {
  calls_.clear();
  for (const Entry& entry : entries_) calls_.push_back(&entry.kept.call());
  return entries_.front().comm->run_together(calls_);
}

Status CallGroup::issue_and_wait() const {
  ANYCCL_TRY(std::vector<Batch> batches, make_batches());
  Status first;
  std::vector<PendingOperation> mine;
  for (const Entry& entry : entries_) {
    const auto batch = std::find_if(batches.begin(), batches.end(), [&](const Batch& b) {
      return b.stream() == entry.stream.get();
    });
    auto comm = entry.comm->shared_from_this();
    auto operation = batch == batches.end() ? comm->issue(entry.kept.call())
                                            : batch->issue(comm, entry.kept.call());
    if (!operation.ok() && first.ok()) first = operation.status();
    if (operation.ok() && batch == batches.end())
      mine.push_back({std::move(comm), *std::move(operation)});
  }
  batches.clear();  // into their streams: ours may wait for them
  Status status = wait_all(mine);
  return first.ok() ? status : first;
}

}  // namespace anyccl
