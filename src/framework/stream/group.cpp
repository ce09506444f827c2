#include "framework/stream/group.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "framework/communicator/one_sided_calls.hpp"
#include "framework/communicator/planning.hpp"

namespace anyccl {

void CallGroup::add(const std::shared_ptr<Comm>& comm, const Call& call,
                    std::shared_ptr<HostStream> stream) {
  if (comms_.empty() || comms_.back() != comm) comms_.push_back(comm);
  Entry& entry = entries_.emplace_back(*comm, call, std::move(stream));
  if (Operators::is_created(call.op)) entry.op = comm->operators().hold(call.op);
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
    ANYCCL_TRY(const double microseconds, Planning(*entry.comm).predict(entry.kept.call()));
    sum += microseconds;
  }
  return sum;
}

Status CallGroup::run_in_one_communicator() {
  calls_.clear();
  for (const Entry& entry : entries_) calls_.push_back(&entry.kept.call());
  return entries_.front().comm->run_together(calls_);
}

/// The collectives of each communicator; each message is alone. Streams make no difference, as they
/// are local: what travels as one belongs to the streams of all its calls.
std::vector<CallGroup::Run> CallGroup::runs() const {
  std::vector<Run> runs;
  std::vector<std::pair<const Comm*, std::size_t>> collectives;  // where each communicator's are
  for (const Entry& entry : entries_) {
    const Call& call = entry.kept.call();
    const auto known = std::find_if(collectives.begin(), collectives.end(),
                                    [&](const auto& one) { return one.first == entry.comm; });
    if (!call.is_point_to_point() && known != collectives.end()) {
      runs[known->second].calls.push_back(&call);
      runs[known->second].streams.push_back(entry.stream.get());
      continue;
    }
    if (!call.is_point_to_point()) collectives.emplace_back(entry.comm, runs.size());
    runs.push_back({entry.comm, {&call}, {entry.stream.get()}});
    if (entry.one_sided != nullptr) runs.back().one_sided = &entry.one_sided->call();
  }
  return runs;
}

Comm::IssuedCalls CallGroup::issue(const Run& run) {
  std::vector<Gate> gates;
  for (const HostStream* stream : run.streams)
    gates.push_back(stream == nullptr ? Gate::open : Gate::closed_by(stream->number()));
  if (run.one_sided != nullptr) return {OneSidedCalls(*run.comm).issue(*run.one_sided, gates[0])};
  if (run.calls[0]->is_point_to_point()) return {run.comm->issue(*run.calls[0], gates[0])};
  return run.comm->issue_all(run.calls, gates);
}

Status CallGroup::issue_and_wait() const {
  ANYCCL_TRY(std::vector<Batch> batches, make_batches());
  Status first;
  std::vector<PendingOperation> mine;
  for (const Run& run : runs()) {
    const auto comm = run.comm->shared_from_this();
    const Operation* gated = nullptr;  // which a stream has already
    Comm::IssuedCalls issued = issue(run);
    for (std::size_t i = 0; i < issued.size(); ++i) {
      if (!issued[i].ok()) {
        if (first.ok()) first = issued[i].status();
        continue;
      }
      const std::shared_ptr<Operation>& operation = *issued[i];
      const auto batch = std::find_if(batches.begin(), batches.end(),
                                      [&](const Batch& b) { return b.stream() == run.streams[i]; });
      if (batch == batches.end()) {
        mine.push_back({comm, operation});
      } else if (batch->add(comm, operation)) {
        if (gated == operation.get()) operation->add_gate();
        gated = operation.get();
      }
    }
  }
  batches.clear();  // into their streams: ours may wait for them
  Status status = wait_all(mine);
  return first.ok() ? status : first;
}

}  // namespace anyccl
