#include "backend.hpp"

#include <unistd.h>

#include <cstring>
#include <mutex>
#include <set>

#include "devices.hpp"
#include "errors.hpp"
#include "sequence_limit.hpp"
#include "waiting.hpp"

namespace anyccl::torch {
namespace {

/// All open groups, which must end before the interpreter does.
struct Registry {
  std::mutex mutex;
  std::set<std::shared_ptr<Core>> open;
};
Registry& registry() {
  static auto* const all = new Registry;  // outlives backends that are destroyed late
  return *all;
}

std::optional<std::vector<at::Tensor>> recorded(const char* title, at::TensorList tensors) {
  return title == nullptr ? std::nullopt : std::make_optional(tensors.vec());
}

/// All calls of the job; small ones may travel as one.
void issue(const Job& job, anycclComm_t comm, Operation& operation) {
  if (job.calls.size() == 1) {
    anycclWork_t work = nullptr;
    check(anycclIssue(&job.calls[0], comm, &work), job.name());
    operation.add(work);
    return;
  }
  std::vector<anycclWork_t> works(job.calls.size());
  const anycclResult_t result = anycclIssueAll(job.calls.data(), works.size(), comm, works.data());
  for (anycclWork_t work : works)
    if (work != nullptr) operation.add(work);
  check(result, job.name());
}

/// The communicator has the device of the job from now on, unless it is the CPU. Refuses a second
/// one.
void use_device(SharedComm& comm, const Job& job) {
  if (job.device.is_cpu()) return;
  const c10::Device used = comm.use_device(job.device, job.name(), deadline_after(job.timeout));
  if (used != job.device)
    refuse(job.name(), "the tensor is on " + job.device.str() +
                           ", and this group has had tensors on " + used.str() +
                           "; tensors of a group are on one device and on the CPU");
}

/// The operator of a call with PREMUL_SUM, while it is called.
class Factor {
 public:
  Factor(Job& job, anycclComm_t comm) : comm_(comm) {
    if (!job.factor.defined()) return;
    const Element element = element_of(job.factor.scalar_type());
    check(anycclRedOpCreatePreMulSum(&op_, job.factor.mutable_data_ptr(), element.type,
                                     anycclScalarHostImmediate, comm),
          job.name());
    created_ = true;
    for (anycclCall_t& call : job.calls) call.op = op_;
  }
  ~Factor() {
    if (created_) anycclRedOpDestroy(op_, comm_);
  }
  Factor(const Factor&) = delete;
  Factor& operator=(const Factor&) = delete;

 private:
  anycclComm_t comm_;
  anycclRedOp_t op_ = anycclSum;
  bool created_ = false;
};

}  // namespace

anycclCall_t& Job::add_call(anycclCollective_t collective, c10::ScalarType scalar_type) {
  memory.next_call();
  anycclCall_t& added = calls.emplace_back();
  added = {};
  added.size = sizeof added;
  added.collective = collective;
  added.datatype = element_of(scalar_type).type;
  added.timeout_ms = limit_of(timeout);
  return added;
}

anycclCollConfig_t& Job::config_of(anycclCall_t& call) {
  if (call.config != nullptr) return configs.front();
  call.config = &configs.emplace_front(anycclCollConfig_t ANYCCL_COLLCONFIG_INITIALIZER);
  return configs.front();
}

void Job::set_result_type(anycclCall_t& call, c10::ScalarType scalar_type) {
  const Element element = element_of(scalar_type);
  if (!element.reducible)
    refuse(name(), std::string("a sum cannot be of type ") + c10::toString(scalar_type));
  config_of(call).outputType = element.type;
}

Backend::Backend(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                 c10::intrusive_ptr<Options> options)
    : Backend(is_configured_later(*options)
                  ? JoinedGroup{std::make_shared<SharedComm>(), ""}
                  : meet(store, rank, size, options->timeout, options->numbers,
                         options->global_ranks_in_group),
              store, rank, size, options) {}

Backend::Backend(JoinedGroup group, const c10::intrusive_ptr<c10d::Store>& store, int rank,
                 int size, c10::intrusive_ptr<Options> options)
    : c10d::Backend(rank, size),
      core_(new Core{::getpid(), std::move(group)}),
      options_(std::move(options)),
      store_(store) {
  init();
  set_open(core_, true);
}

void Backend::set_open(const std::shared_ptr<Core>& core, bool is_open) {
  if (::getpid() != core->process) return;
  const std::lock_guard lock(registry().mutex);
  if (is_open)
    registry().open.insert(core);
  else
    registry().open.erase(core);
}

Backend::~Backend() {
  set_open(core_, false);
  const GilReleased released;  // operations that complete meanwhile may need it
  try {
    core_->close(std::chrono::milliseconds{1000});
  } catch (...) {
    // The communicator aborts the rest.
  }
}

void Core::close(std::chrono::milliseconds timeout, const std::function<void()>& meanwhile) {
  if (::getpid() != process) return;
  // An operation that never ends must leave the others time to end as they should.
  constexpr std::chrono::milliseconds kLeast{100};
  const auto deadline = deadline_after(timeout), half = deadline_after(timeout / 2);
  try {
    // First, as callbacks may call operations.
    while (!executor->wait_idle(
               std::min(time_left(half, std::chrono::milliseconds{0}), kSignalTime)) &&
           Clock::now() < half)
      meanwhile();
    group.comm->close(std::max(deadline, Clock::now() + kLeast), meanwhile);
  } catch (...) {
    group.comm->abort();
    throw;
  }
  executor->wait_idle(std::chrono::milliseconds{500});  // operations that failed by an abort
}

void Backend::close_all(std::chrono::milliseconds timeout) {
  const auto deadline = deadline_after(timeout);
  std::set<std::shared_ptr<Core>> open;
  {
    const std::unique_lock lock(registry().mutex, std::try_to_lock);
    if (!lock.owns_lock()) return;  // forked while another thread had it
    open = registry().open;
  }
  for (const auto& core : open) core->close(time_left(deadline, std::chrono::milliseconds{0}));
  // A thread that is in the interpreter at its end ends the process.
  for (const auto& core : open)
    if (core->process == ::getpid()) core->executor->stop();
}

void Backend::abort() {
  comm().abort();
}

void Backend::dump(const std::string& path) {
  comm().with("dump", [&](anycclComm_t comm) {
    if (anycclCommDump(comm, path.c_str()) != anycclSuccess)
      throw_backend_error(std::string("anyccl: dump: ") + anycclGetLastError(comm));
  });
}

c10d::ErrorType Backend::getError() {
  switch (comm().error()) {
    case anycclSuccess:
    case anycclInProgress:
      return c10d::ErrorType::SUCCESS;
    case anycclTimeout:
      return c10d::ErrorType::TIMEOUT;
    case anycclRemoteError:
      return c10d::ErrorType::REMOTE_ERROR;
    default:
      return c10d::ErrorType::COMM_ERROR;
  }
}

c10::intrusive_ptr<c10d::Backend> Backend::split(
    const c10::intrusive_ptr<c10d::Store>& store, const std::vector<int>& ranks,
    const c10::intrusive_ptr<c10d::Backend::Options>& opts) {
  const auto place = std::find(ranks.begin(), ranks.end(), rank_);
  if (place == ranks.end()) return nullptr;
  return c10::make_intrusive<Backend>(store->clone(), static_cast<int>(place - ranks.begin()),
                                      static_cast<int>(ranks.size()), options_for(ranks, opts));
}

c10::intrusive_ptr<c10d::Backend> Backend::merge(
    const c10::intrusive_ptr<c10d::Store>& store,
    const c10::intrusive_ptr<c10d::Backend::Options>& opts, const int& rank, const int& size) {
  auto options = inherited_options(opts);
  return c10::make_intrusive<Backend>(store->clone(), rank, size, std::move(options));
}

const char* Backend::profiler_title(const char* title) const {
  if (!at::hasCallbacks()) return nullptr;
  if (options_->profiled_as == "anyccl") return title;
  // Works and profilers keep the pointer: the few texts there are stay for ever.
  static std::mutex mutex;
  static auto* const titles = new std::set<std::string>;
  const std::lock_guard lock(mutex);
  return titles->insert(options_->profiled_as + std::strchr(title, ':')).first->c_str();
}

std::shared_ptr<Operation> Backend::operation_of(Job& job, at::TensorList inputs,
                                                 at::TensorList outputs) {
  auto operation = std::make_shared<Operation>(core_->executor, job.name(), job.device);
  for (const at::Tensor& tensor : inputs) operation->keep(tensor);
  for (const at::Tensor& tensor : outputs) operation->keep(tensor);
  for (const at::Tensor& tensor : job.memory.temporaries()) operation->keep(tensor);
  for (const at::Tensor& tensor : outputs)
    if (is_plain(tensor)) operation->writes(tensor);
  for (CopyBack& copy : job.memory.copies()) operation->add(std::move(copy));
  return operation;
}

/// A blocking call. In the main thread, what takes long becomes an operation, which goes on if a
/// signal ends the wait for it: it has its place among those of the other ranks.
void Backend::run(Job& job, at::TensorList inputs, at::TensorList outputs) {
  std::shared_ptr<Operation> rest;
  const auto run_one = [&](const anycclCall_t& call, anycclComm_t comm) {
    anycclWork_t work = nullptr;
    anycclResult_t result = anycclInProgress;
    for (bindings::SequenceLimit turn;;) {
      result = is_main_thread() ? anycclRunFor(&call, comm, limit_of(kSignalTime), &work)
                                : anycclRun(&call, comm);
      if (result != anycclInProgress || work != nullptr) break;
      check_signals();  // it has not begun: another thread is in a sequence
      if (turn.is_over(comm, call.timeout_ms, limit_of(kSignalTime)))
        std::rethrow_exception(failure(anycclTimeout, job.name(), bindings::SequenceLimit::kText));
    }
    if (result != anycclInProgress) check(result, job.name());
    if (work == nullptr) return;
    rest = operation_of(job, inputs, outputs);
    rest->add(work);
  };
  try {
    comm().with(job.name(), [&](anycclComm_t comm) {
      const Factor factor(job, comm);
      if (job.calls.size() == 1) return run_one(job.calls[0], comm);
      if (job.calls.empty()) return;
      rest = operation_of(job, inputs, outputs);
      issue(job, comm, *rest);
    });
    if (rest == nullptr) return copy_back(job.memory.copies());
    check_signals();
    rest->wait(std::chrono::milliseconds{0});
  } catch (...) {
    if (rest != nullptr) open_.add(rest), rest->abandon();
    throw;
  }
  if (const std::exception_ptr error = rest->error()) std::rethrow_exception(error);
}

void Backend::run_in_stream(Job& job, at::TensorList inputs, at::TensorList outputs) {
  const std::vector<CopyBack> copies = std::exchange(job.memory.copies(), {});
  const auto operation = operation_of(job, inputs, outputs);
  try {
    comm().with(job.name(), [&](anycclComm_t comm) {
      const Factor factor(job, comm);
      issue(job, comm, *operation);
    });
    if (operation->is_in_queues())
      operation->hold_current_stream();
    else
      operation->wait(std::chrono::milliseconds{0});
    if (const std::exception_ptr error = operation->error()) std::rethrow_exception(error);
  } catch (...) {
    open_.add(operation), operation->abandon();
    throw;
  }
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  for (const CopyBack& copy : copies) copy.to.copy_(copy.from);
}

Backend::WorkPtr Backend::start(Job& job, at::TensorList inputs, at::TensorList outputs) {
  job.device = common_device(job.name(), inputs, outputs);
  use_device(comm(), job);
  const bool is_on_device = !job.device.is_cpu();
  if (is_on_device && !c10d::isP2POp(job.type))
    comm().use_queues(job.name(), [&] {  // first all ranks meet, within the time limit
      c10d::BarrierOptions options;
      options.timeout = job.timeout;
      if (meeting_ == nullptr) meeting_ = barrier(options);  // a signal may end the wait for it
      meeting_->wait(kNoTimeout);
      meeting_ = nullptr;
    });
  const CurrentStream stream(job.name(), job.device);
  for (anycclCall_t& call : job.calls) call.stream = stream.get();
  const std::uint64_t sequence = c10d::isP2POp(job.type)
                                     ? sequence_.load(std::memory_order_relaxed)
                                     : sequence_.fetch_add(1, std::memory_order_relaxed) + 1;
  const char* const title = profiler_title(job.title);
  const bool timed = timed_.load(std::memory_order_relaxed);
  if (!job.async) {
    auto work = c10::make_intrusive<DoneWork>(rank_, job.type, title, recorded(title, inputs),
                                              sequence, timed, outputs);
    if (is_on_device && comm().has_queues())
      run_in_stream(job, inputs, outputs);
    else
      run(job, inputs, outputs);
    work->end();
    return work;
  }

  const auto operation = operation_of(job, inputs, outputs);
  if (c10d::isP2POp(job.type)) operation->limit(job.timeout);
  const bool coalesces = coalescing_.add(operation, outputs);
  auto work =
      c10::make_intrusive<PendingWork>(rank_, job.type, title, recorded(title, inputs), sequence,
                                       timed, operation, !coalesces, outputs.vec());
  comm().with(job.name(), [&](anycclComm_t comm) {
    const Factor factor(job, comm);
    issue(job, comm, *operation);
  });
  if (!c10d::isP2POp(job.type)) open_.add(operation);
  if (work->observed()) operation->watch();
  return work;
}

Backend::WorkPtr Backend::endCoalescing() {
  const auto parts = coalescing_.take();
  if (!parts) refuse("end_coalescing", "there was no start_coalescing in this thread");
  const c10::Device device =
      parts->empty() ? c10::Device(c10::kCPU) : parts->front().operation->device();
  const auto operation = std::make_shared<Operation>(core_->executor, "coalesced", device);
  Tensors outputs;
  for (const Coalescing::Part& part : *parts) {
    operation->add(part.operation);
    outputs.insert(outputs.end(), part.outputs.begin(), part.outputs.end());
  }
  return c10::make_intrusive<PendingWork>(rank_, c10d::OpType::COALESCED, nullptr, std::nullopt,
                                          sequence_.load(std::memory_order_relaxed), timed_.load(),
                                          operation, true, std::move(outputs));
}

}  // namespace anyccl::torch
