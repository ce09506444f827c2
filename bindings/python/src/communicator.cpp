#include "communicator.hpp"

#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>

#include "group.hpp"
#include "objects.hpp"
#include "sequence_limit.hpp"
#include "stream.hpp"

namespace anyccl::python {

Communicator::Call::Call(Communicator& comm) : comm_(&comm), handle(comm.handle_) {
  comm.check_usable();
  ++comm.inside_;
  comm.drop_complete_operations(false);
}

Communicator::Communicator(anycclComm_t handle) : handle_(handle) {
  static_cast<void>(anycclCommUserRank(handle, &rank_));
  static_cast<void>(anycclCommCount(handle, &size_));
}

/// Lets go of all arrays that it keeps; nobody may use them any more.
void Communicator::release_arrays() {
  kept_.clear();
  windows_.clear();
}

/// Keeps arrays that the library may still use for ever, as nobody can wait for it.
void Communicator::keep_arrays_forever() {
  new std::deque<OperationPtr>(std::move(kept_));
  new std::map<anycclWindow_t, Array>(std::move(windows_));
}

Communicator::~Communicator() {
  if (is_exiting()) {
    keep_arrays_forever();
    return;
  }
  if (handle_ == nullptr) return;
  const auto destroy = [handle = handle_, aborts = creating_] {
    static_cast<void>(aborts ? anycclCommAbort(handle) : anycclCommDestroy(handle));
  };
  if (is_in_callback()) {
    std::thread(destroy).detach();  // what it waits for may need this thread
    keep_arrays_forever();
    return;
  }
  const Unlocked released;
  destroy();
}

/// Raises if it has ended or is finalized, if it or a part of it is being created, or if an
/// operator's function has raised. Does not ask whether the communicator has failed.
void Communicator::check_usable() {
  check_operators();
  if (handle_ == nullptr) raise(anycclInvalidUsage, "the communicator was " + ended_);
  if (finalized_)
    raise(anycclInvalidUsage, "the communicator is finalized: it can only be destroyed");
  if (creating_ && !is_created())
    raise(anycclInvalidUsage,
          "the communicator is still being created: wait until `ready` is true");
  if (splitting_.expired()) return;
  const CommunicatorPtr part = splitting_.lock();
  if (part != nullptr && part->creating_ && !part->is_created())
    raise(anycclInvalidUsage,
          "a part of this communicator is being created: wait until it is ready");
  splitting_.reset();
}

int Communicator::rank() {
  if (rank_ < 0) check_usable();
  return rank_;
}

int Communicator::size() {
  if (size_ < 0) check_usable();
  return size_;
}

std::string Communicator::text() const {
  std::string text = "<anyccl.Communicator";
  if (rank_ >= 0) text += ", rank " + std::to_string(rank_) + " of " + std::to_string(size_);
  if (handle_ == nullptr) return text + ", ended>";
  if (finalized_) return text + ", finalized>";
  return text + (creating_ ? ", being created>" : ">");
}

nb::object Communicator::run(Request&& request, const Options& options) {
  request.call.size = sizeof request.call;
  request.call.timeout_ms = options.timeout ? milliseconds(options.timeout) : timeout_ms_;
  if (request.is_other() && (options.async || options.timeout))
    raise(anycclUnsupported, "this operation has neither async_op nor a timeout");
  if (const auto group = Group::current())
    return group->add(shared_from_this(), std::move(request), options);
  if (options.stream != nullptr) return run_in_stream(std::move(request), options);
  if (!options.async) return run_blocking(request);
  const Call turn(*this);
  issued_.copy_inputs(request, nullptr);
  auto operation = std::make_shared<Operation>(std::move(request));
  raise_unless_ok(unlocked(
      [&] { return anycclIssue(&operation->request.call, turn.handle, &operation->work); }));
  issued_.add(operation);
  return nb::cast(Work(shared_from_this(), std::move(operation)));
}

nb::object Communicator::run_blocking(Request& request) {
  const Call turn(*this);
  issued_.copy_inputs(request, nullptr);
  anycclWork_t rest = nullptr;
  Outcome outcome;
  bindings::SequenceLimit limit;
  if (request.is_other())
    outcome = unlocked([&] { return request.launch(turn.handle, nullptr); });
  else
    wait_in_slices(std::nullopt, [&](unsigned ms) {
      outcome = outcome_of(anycclRunFor(&request.call, turn.handle, ms, &rest));
      if (outcome.code != anycclInProgress || rest != nullptr) return true;
      // Another thread is in a sequence.
      if (!limit.is_over(turn.handle, request.call.timeout_ms, ms)) return false;
      outcome = {anycclTimeout, bindings::SequenceLimit::kText};
      return true;
    });
  if (rest != nullptr) {
    auto operation = std::make_shared<Operation>(std::move(request));
    operation->work = rest;
    issued_.add(operation);
    return Work(shared_from_this(), std::move(operation)).wait(std::nullopt);
  }
  check_operators();
  raise_unless_ok(outcome);
  return request.result.take();
}

nb::object Communicator::run_in_stream(Request&& request, const Options& options) {
  const Call turn(*this);
  const anycclStream_t stream = options.stream->handle();
  nb::object later = options.async ? nb::none() : request.result.take_early();
  issued_.copy_inputs(request, options.stream.get());
  auto operation = std::make_shared<Operation>(std::move(request));
  operation->stream = options.stream;
  Request& issued = operation->request;
  issued.call.stream = stream;
  raise_unless_ok(unlocked([&] {
    return issued.is_other() ? issued.launch(turn.handle, stream)
                             : anycclIssue(&issued.call, turn.handle, &operation->work);
  }));
  if (operation->work == nullptr) operation->end = options.stream->record_end();
  issued_.add(operation);
  options.stream->note_use(shared_from_this());
  if (options.async) return nb::cast(Work(shared_from_this(), std::move(operation)));
  adopt(std::move(operation));
  return later;
}

nb::object Communicator::failure() const {
  if (operator_failure_.is_valid()) return operator_failure_;
  if (handle_ == nullptr) raise(anycclInvalidUsage, "the communicator was " + ended_);
  const anycclComm_t handle = handle_;
  const Outcome outcome = unlocked([&] {
    anycclResult_t failed = anycclSuccess;
    const anycclResult_t asked = anycclCommGetAsyncError(handle, &failed);
    return asked == anycclSuccess ? failed : asked;
  });
  const bool well = outcome.ok() || outcome.code == anycclInProgress;
  return well ? nb::none() : exception_of(outcome);
}

std::string Communicator::last_plan() {
  const Call turn(*this);
  std::string copy;
  raise_unless_ok(unlocked([&] {
    const char* text = "";
    const anycclResult_t result = anycclCommLastPlan(turn.handle, &text);
    copy = text;
    return result;
  }));
  return copy;
}

void Communicator::dump(const std::string& path) {
  const Call turn(*this);
  raise_unless_ok(unlocked([&] { return anycclCommDump(turn.handle, path.c_str()); }));
}

std::string Communicator::metrics() {
  const Call turn(*this);
  std::string kept;
  raise_unless_ok(unlocked([&] {
    const char* text = "";
    const anycclResult_t result = anycclCommMetrics(turn.handle, &text);
    kept = text;
    return result;
  }));
  return kept;
}

std::pair<std::uint64_t, std::uint64_t> Communicator::completed() {
  const Call turn(*this);
  std::pair<std::uint64_t, std::uint64_t> completed;
  raise_unless_ok(unlocked(
      [&] { return anycclCommCompleted(turn.handle, &completed.first, &completed.second); }));
  return completed;
}

std::vector<int> Communicator::survivors() {
  const Call turn(*this);
  std::vector<int> ranks(static_cast<std::size_t>(size()));
  raise_unless_ok(unlocked([&] {
    int count = 0;
    const anycclResult_t result = anycclCommSurvivors(turn.handle, ranks.data(), &count);
    ranks.resize(static_cast<std::size_t>(count));
    return result;
  }));
  return ranks;
}

Seconds Communicator::timeout() const {
  if (timeout_ms_ == 0) return std::nullopt;
  if (timeout_ms_ == ANYCCL_NO_TIMEOUT) return HUGE_VAL;
  return timeout_ms_ / 1000.0;
}

/// Takes the handle away, so that no call comes any more.
anycclComm_t Communicator::end(std::string why) {
  ended_ = std::move(why);
  return std::exchange(handle_, nullptr);
}

void Communicator::destroy() {
  if (handle_ == nullptr) return;
  if (inside_ > 0)
    raise(anycclInvalidUsage,
          "another thread is inside a call on this communicator: destroy it when it has returned");
  wait_for_interrupted(*this);
  const anycclComm_t handle = end("destroyed");
  const Outcome outcome = unlocked([&] { return anycclCommDestroy(handle); });
  release_arrays();
  check_operators();  // what ran until then
  raise_unless_ok(outcome);
}

void Communicator::abort() {
  if (handle_ == nullptr) return;
  const anycclComm_t handle = end("aborted");
  const Outcome outcome = unlocked([&] { return anycclCommAbort(handle); });
  release_arrays();
  raise_unless_ok(outcome);
}

void Communicator::revoke() {
  const Call turn(*this);
  raise_unless_ok(unlocked([&] { return anycclCommRevoke(turn.handle, ANYCCL_REVOKE_DEFAULT); }));
}

void Communicator::drop_complete_operations(bool all) {
  constexpr std::size_t kAFew = 8;  // each call adds at most one
  if (handle_ == nullptr || (kept_.empty() && retired_.empty())) return;
  const std::vector<anycclRedOp_t> retired = std::exchange(retired_, {});
  std::vector<OperationPtr> looked, open;
  const std::size_t count = all ? kept_.size() : std::min(kept_.size(), kAFew);
  for (std::size_t i = 0; i < count; ++i) {
    looked.push_back(std::move(kept_.front()));
    kept_.pop_front();
  }
  const anycclComm_t handle = handle_;
  {
    const Unlocked released;
    for (const anycclRedOp_t op : retired) static_cast<void>(anycclRedOpDestroy(op, handle));
    for (OperationPtr& operation : looked)
      if (!operation->is_settled()) open.push_back(std::move(operation));
  }
  for (OperationPtr& operation : open) kept_.push_back(std::move(operation));
}

void Communicator::note_operator_failure(nb::object exception) {
  if (!operator_failure_.is_valid()) operator_failure_ = std::move(exception);
}

void Communicator::check_operators() {
  if (!operator_failure_.is_valid()) return;
  if (handle_ != nullptr) {
    const anycclComm_t handle = end("aborted, as an operator's function raised an exception");
    const Unlocked released;
    static_cast<void>(anycclCommAbort(handle));
  }
  release_arrays();
  raise_object(operator_failure_);
}

}  // namespace anyccl::python
