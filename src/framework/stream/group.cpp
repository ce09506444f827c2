#include "framework/stream/group.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace anyccl {

void CallGroup::add(const std::shared_ptr<Comm>& comm, const Call& call,
                    std::shared_ptr<HostStream> stream) {
  if (comms_.empty() || comms_.back() != comm) comms_.push_back(comm);
  entries_.emplace_back(*comm, call, std::move(stream));
}

void CallGroup::add(const std::shared_ptr<Comm>& comm, const OneSidedCall& call,
                    std::shared_ptr<HostStream> stream) {
  Call message;
  message.collective = call.what == OneSidedCall::What::wait ? Collective::recv : Collective::send;
  message.dtype = call.dtype;
  message.root = call.peer;
  message.count = call.count;
  message.input = call.input;
  add(comm, message, std::move(stream));
  entries_.back().one_sided = std::make_unique<KeptOneSidedCall>(call);
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
      comms_.size() == 1 && std::all_of(entries_.begin(), entries_.end(), [](const Entry& e) {
        return e.stream == nullptr && e.one_sided == nullptr;
      });
  Status status = together ? run_in_one_communicator() : issue_and_wait();
  entries_.clear();
  comms_.clear();
  return status;
}

Result<double> CallGroup::predict() const {
  double sum = 0;
  for (const Entry& entry : entries_) {
    ANYCCL_TRY(const double microseconds, entry.comm->predict(entry.kept.call()));
    sum += microseconds;
  }
  return sum;
}

Status CallGroup::run_in_one_communicator() {
  calls_.clear();
  for (const Entry& entry : entries_) calls_.push_back(&entry.kept.call());
  return entries_.front().comm->run_together(calls_);
}

/// The calls of each communicator that follow each other in the same stream; each message is alone.
/// Messages aside, they follow each other equally on all ranks.
std::vector<CallGroup::Run> CallGroup::runs() const {
  std::vector<Run> runs;
  std::vector<std::pair<const Comm*, std::size_t>> last;  // run of each communicator's collectives
  for (const Entry& entry : entries_) {
    const auto known = std::find_if(last.begin(), last.end(),
                                    [&](const auto& one) { return one.first == entry.comm; });
    const bool message = entry.kept.call().is_point_to_point();
    if (!message && known != last.end() && runs[known->second].stream == entry.stream.get()) {
      runs[known->second].calls.push_back(&entry.kept.call());
      continue;
    }
    if (!message && known != last.end()) known->second = runs.size();
    if (!message && known == last.end()) last.emplace_back(entry.comm, runs.size());
    runs.push_back({entry.comm, entry.stream.get(), {&entry.kept.call()}});
    if (entry.one_sided != nullptr) runs.back().one_sided = &entry.one_sided->call();
  }
  return runs;
}

Status CallGroup::issue_and_wait() const {
  ANYCCL_TRY(std::vector<Batch> batches, make_batches());
  Status first;
  std::vector<PendingOperation> mine;
  for (const Run& run : runs()) {
    const auto batch = std::find_if(batches.begin(), batches.end(),
                                    [&](const Batch& b) { return b.stream() == run.stream; });
    const bool waits = batch == batches.end();
    const auto comm = run.comm->shared_from_this();
    Comm::IssuedCalls issued;
    if (run.one_sided != nullptr)
      issued.push_back(waits ? comm->issue(*run.one_sided) : batch->issue(comm, *run.one_sided));
    else if (run.calls[0]->is_point_to_point())
      issued.push_back(waits ? comm->issue(*run.calls[0]) : batch->issue(comm, *run.calls[0]));
    else
      issued = waits ? comm->issue_all(run.calls) : batch->issue_all(comm, run.calls);
    for (auto& operation : issued) {
      if (!operation.ok() && first.ok()) first = operation.status();
      if (operation.ok() && waits) mine.push_back({comm, *std::move(operation)});
    }
  }
  batches.clear();  // into their streams: ours may wait for them
  Status status = wait_all(mine);
  return first.ok() ? status : first;
}

}  // namespace anyccl
