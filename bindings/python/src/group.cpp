#include "group.hpp"

#include <algorithm>
#include <utility>

#include "communicator.hpp"
#include "sequence_limit.hpp"
#include "stream.hpp"

namespace anyccl::python {
namespace {

thread_local constinit bool may_be_open = false;  // asked by every call
thread_local std::weak_ptr<Group> outermost;

}  // namespace

/// Forgotten at the end, whatever happens.
struct Group::Entries {
  explicit Entries(std::vector<Entry>& entries) : all(entries) {}
  Entries(const Entries&) = delete;
  Entries& operator=(const Entries&) = delete;
  ~Entries() { all.clear(); }
  std::vector<Entry>& all;
};

std::shared_ptr<Group> Group::current() {
  return may_be_open ? outermost.lock() : nullptr;
}

void need_no_group(const char* what) {
  if (Group::current() != nullptr)
    raise(anycclInvalidUsage,
          std::string(what) + " has its result when it returns: it cannot be in a group");
}

void Group::enter() {
  if (open_) raise(anycclInvalidUsage, "this group is open already: make another one");
  open_ = true;
  inner_ = current() != nullptr;
  if (inner_) return;
  outermost = weak_from_this();
  may_be_open = true;
}

void Group::leave(bool raised) {
  open_ = false;
  if (inner_) return;
  if (current().get() != this)
    raise(anycclInvalidUsage, "the group was opened by another thread, which must end it, too");
  outermost.reset();
  may_be_open = false;
  const Entries all(entries_);
  if (raised)
    abandon({anycclInvalidUsage, "the group of this operation was left by an exception"});
  else
    run();
}

nb::object Group::add(const CommunicatorPtr& comm, Request request, const Options& options) {
  const Communicator::Call turn(*comm);
  nb::object later = options.async ? nb::none() : request.result.take_early();
  auto operation = std::make_shared<Operation>(std::move(request));
  operation->in_open_group = true;
  operation->stream = options.stream;
  entries_.push_back({comm, operation});
  return options.async ? nb::cast(Work(comm, std::move(operation))) : later;
}

/// Nothing of it was or will be started.
void Group::abandon(const Outcome& why) {
  for (const Entry& entry : entries_) {
    entry.operation->in_open_group = false;
    entry.operation->outcome = why;
  }
}

void Group::run() {
  std::vector<Communicator::Call> turns;
  try {
    for (const Entry& entry : entries_) turns.emplace_back(*entry.comm);
  } catch (...) {
    abandon({anycclInvalidUsage, "a communicator of the group had ended before its end"});
    throw;
  }
  const bool plain = std::none_of(entries_.begin(), entries_.end(), [](const Entry& entry) {
    return entry.operation->stream != nullptr || entry.operation->request.is_other();
  });
  try {
    for (const Entry& entry : entries_)
      entry.comm->issued().copy_inputs(entry.operation->request, entry.operation->stream.get());
  } catch (...) {
    abandon({anycclInvalidUsage, "the end of the group of this operation was interrupted"});
    throw;
  }
  for (const Entry& entry : entries_) entry.operation->in_open_group = false;
  plain ? issue_and_wait() : launch();
  for (const Entry& entry : entries_) entry.comm->check_operators();
}

/// As the library's own group does; but a signal ends the wait, and the operations go on.
void Group::issue_and_wait() {
  Outcome first;
  std::vector<Communicator*> comms;
  for (const Entry& entry : entries_)
    if (std::find(comms.begin(), comms.end(), entry.comm.get()) == comms.end())
      comms.push_back(entry.comm.get());
  try {
    for (Communicator* const comm : comms) {
      std::vector<anycclCall_t> calls;
      std::vector<OperationPtr> operations;
      for (const Entry& entry : entries_)
        if (entry.comm.get() == comm) {
          calls.push_back(entry.operation->request.call);
          operations.push_back(entry.operation);
        }
      const Communicator::Call turn(*comm);
      std::vector<anycclWork_t> works(calls.size());
      const Outcome issued = unlocked(
          [&] { return anycclIssueAll(calls.data(), calls.size(), turn.handle, works.data()); });
      if (first.ok()) first = issued;
      for (std::size_t i = 0; i < works.size(); ++i) {
        operations[i]->work = works[i];
        comm->issued().add(operations[i]);
        if (works[i] == nullptr) operations[i]->outcome = issued;
      }
    }
    for (const Entry& entry : entries_) {
      Operation& operation = *entry.operation;
      Outcome outcome = operation.outcome.value_or(Outcome());
      if (operation.work != nullptr)
        wait_in_slices(std::nullopt, [&](unsigned ms) {
          outcome = outcome_of(anycclWorkWaitFor(operation.work, ms));
          return outcome.code != anycclInProgress;
        });
      if (first.ok()) first = outcome;
    }
  } catch (...) {
    for (const Entry& entry : entries_) {
      Operation& operation = *entry.operation;
      if (operation.work == nullptr && !operation.outcome)
        operation.outcome = Outcome{anycclInvalidUsage, "a communicator of its group had ended"};
      entry.comm->adopt(entry.operation);
    }
    throw;
  }
  raise_unless_ok(first);
}

/// As a group of the library.
void Group::launch() {
  std::vector<anycclComm_t> handles;
  for (const Entry& entry : entries_) handles.push_back(Communicator::Call(*entry.comm).handle);
  Outcome outcome;
  std::exception_ptr interrupted;  // by a signal, once the group has ended
  const auto issue = [&] {
    static_cast<void>(anycclGroupStart());
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      Operation& operation = *entries_[i].operation;
      const Stream* const stream = operation.stream.get();
      static_cast<void>(
          operation.request.launch(handles[i], stream == nullptr ? nullptr : stream->handle()));
    }
    outcome = outcome_of(anycclGroupEnd());
    return anycclSuccess;
  };
  try {
    static_cast<void>(unlocked(issue));
  } catch (...) {
    interrupted = std::current_exception();
  }
  std::vector<std::pair<Stream*, EventPtr>> ends;
  for (const Entry& entry : entries_) {
    Operation& operation = *entry.operation;
    Stream* const stream = operation.stream.get();
    if (stream == nullptr) {
      operation.outcome = outcome;
      continue;
    }
    const auto known = std::find_if(ends.begin(), ends.end(),
                                    [&](const auto& one) { return one.first == stream; });
    operation.end = known != ends.end() ? known->second
                                        : ends.emplace_back(stream, stream->record_end()).second;
    stream->note_use(entry.comm);
    entry.comm->issued().add(entry.operation);
    entry.comm->adopt(entry.operation);
  }
  if (interrupted) std::rethrow_exception(interrupted);
  raise_unless_ok(outcome);
}

void Sequence::enter() {
  need_no_group("sequence");
  const Communicator::Call turn(*comm_);
  Outcome outcome;
  const unsigned most_ms = milliseconds(comm_->timeout());
  bindings::SequenceLimit limit;
  wait_in_slices(std::nullopt, [&](unsigned ms) {
    outcome = outcome_of(anycclSequenceBegin(turn.handle, ms));
    if (outcome.code != anycclInProgress) return true;
    if (!limit.is_over(turn.handle, most_ms, ms)) return false;
    outcome = {anycclTimeout, bindings::SequenceLimit::kText};
    return true;
  });
  raise_unless_ok(outcome);
  handle_ = turn.handle;
}

/// Raises nothing: a communicator that was destroyed in the block has no sequence any more.
void Sequence::exit() {
  static_cast<void>(unlocked([&] { return anycclSequenceEnd(handle_); }));
}

}  // namespace anyccl::python
