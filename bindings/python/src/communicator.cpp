#include "communicator.hpp"

#include <utility>

namespace anyccl::python {
namespace {

/// How long a wait may keep Python from its signals, in milliseconds. Short enough for a person,
/// long enough that a rank which waits for minutes sleeps nearly all the time.
constexpr unsigned kSignalTime = 500;

}  // namespace

/// One thread's turn: the library takes calls on a communicator one at a time, and Python's threads
/// could meet because calls release the interpreter lock.
class Communicator::Call {
 public:
  explicit Call(Communicator& comm) : comm_(comm) {
    if (comm.handle_ == nullptr)
      raise(anycclInvalidUsage, std::string("the communicator was ") + comm.ended_);
    if (comm.busy_)
      raise(anycclInvalidUsage,
            "another thread is inside a call on this communicator: threads must take turns");
    comm.busy_ = true;
    comm.sweep();
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() { comm_.busy_ = false; }

 private:
  Communicator& comm_;
};

Communicator::Communicator(anycclComm_t handle) : handle_(handle) {
  static_cast<void>(anycclCommUserRank(handle, &rank_));
  static_cast<void>(anycclCommCount(handle, &size_));
}

Communicator::~Communicator() {
  if (is_exiting()) {
    for (auto& operation : dropped_) static_cast<void>(operation.release());
    return;
  }
  if (handle_ == nullptr) return;
  const Unlocked released;
  static_cast<void>(anycclCommDestroy(handle_));
}

nb::object Communicator::run(anycclCall_t call, Array input, Result result, bool async) {
  const Call turn(*this);
  const anycclComm_t handle = handle_;  // abort() may be called meanwhile
  call.size = sizeof call;
  call.timeout_ms = timeout_ms_;
  if (async) {
    auto operation = std::make_unique<Operation>(std::move(input), std::move(result));
    raise_unless_ok(unlocked([&] { return anycclIssue(&call, handle, &operation->work); }));
    return nb::cast(Work(shared_from_this(), std::move(operation)));
  }
  anycclWork_t rest = nullptr;
  const Outcome outcome = unlocked([&] { return anycclRunFor(&call, handle, kSignalTime, &rest); });
  if (rest != nullptr) {
    auto operation = std::make_unique<Operation>(std::move(input), std::move(result));
    operation->work = rest;
    return Work(shared_from_this(), std::move(operation)).wait();
  }
  raise_unless_ok(outcome);
  return result.take();
}

CommunicatorPtr Communicator::split(int color, int key) {
  const Call turn(*this);
  const anycclComm_t handle = handle_;
  return made(
      [&](anycclComm_t* part) { return anycclCommSplit(handle, color, key, part, nullptr); });
}

nb::object Communicator::failure() const {
  if (handle_ == nullptr) raise(anycclInvalidUsage, std::string("the communicator was ") + ended_);
  const anycclComm_t handle = handle_;
  const Outcome outcome = unlocked([&] {
    anycclResult_t failed = anycclSuccess;
    const anycclResult_t asked = anycclCommGetAsyncError(handle, &failed);
    return asked == anycclSuccess ? failed : asked;
  });
  return outcome.ok() ? nb::none() : exception_of(outcome);
}

std::string Communicator::last_plan() {
  const Call turn(*this);
  const anycclComm_t handle = handle_;
  const char* text = "";
  raise_unless_ok(unlocked([&] { return anycclCommLastPlan(handle, &text); }));
  return text;
}

std::optional<double> Communicator::timeout() const {
  if (timeout_ms_ == 0) return std::nullopt;
  return timeout_ms_ / 1000.0;
}

void Communicator::set_timeout(std::optional<double> seconds) {
  constexpr double kMost = 4'000'000;  // milliseconds are 32 bits
  if (seconds && !(*seconds > 0 && *seconds <= kMost))
    raise_invalid("timeout is " + std::to_string(*seconds) +
                  " s: it is more than 0 and at most 4000000, or None");
  timeout_ms_ = seconds ? std::max(1U, static_cast<unsigned int>(*seconds * 1000)) : 0;
}

anycclRedOp_t Communicator::create_pre_mul_sum(DType dtype, const void* factor) {
  const Call turn(*this);
  anycclRedOp_t op{};
  const anycclComm_t handle = handle_;
  raise_unless_ok(unlocked([&] {
    return anycclRedOpCreatePreMulSum(&op, const_cast<void*>(factor),
                                      static_cast<anycclDataType_t>(dtype),
                                      anycclScalarHostImmediate, handle);
  }));
  return op;
}

void Communicator::destroy() {
  if (handle_ == nullptr) return;
  anycclComm_t handle = nullptr;
  {
    const Call turn(*this);
    std::swap(handle, handle_);
    ended_ = "destroyed";
  }
  const Outcome outcome = unlocked([&] { return anycclCommDestroy(handle); });
  dropped_.clear();
  raise_unless_ok(outcome);
}

void Communicator::abort() {
  if (handle_ == nullptr) return;
  const anycclComm_t handle = std::exchange(handle_, nullptr);
  ended_ = "aborted";
  const Outcome outcome = unlocked([&] { return anycclCommAbort(handle); });
  dropped_.clear();
  raise_unless_ok(outcome);
}

void Communicator::sweep() {
  if (dropped_.empty() && retired_.empty()) return;
  const anycclComm_t handle = handle_;
  const std::vector<anycclRedOp_t> retired = std::exchange(retired_, {});
  std::vector<std::unique_ptr<Operation>> open, complete, all = std::exchange(dropped_, {});
  {
    const Unlocked released;
    for (const anycclRedOp_t op : retired) static_cast<void>(anycclRedOpDestroy(op, handle));
    for (auto& operation : all) {
      int done = 0;
      static_cast<void>(anycclWorkTest(operation->work, &done));
      (done != 0 ? complete : open).push_back(std::move(operation));
    }
  }
  for (auto& operation : open) dropped_.push_back(std::move(operation));
}

Work::~Work() {
  if (operation_ == nullptr || complete_) return;
  if (is_exiting())
    static_cast<void>(operation_.release());
  else
    comm_->adopt(std::move(operation_));
}

nb::object Work::wait() {
  Outcome outcome;
  for (;;) {
    outcome = unlocked([&] { return anycclWorkWaitFor(operation_->work, kSignalTime); });
    if (outcome.code != anycclInProgress) break;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();  // the operation goes on
  }
  complete_ = true;
  raise_unless_ok(outcome);
  operation_->input = {};
  return operation_->result.take();
}

Outcome Work::look() {
  int done = 0;
  const Outcome outcome = unlocked([&] { return anycclWorkTest(operation_->work, &done); });
  complete_ = complete_ || done != 0;
  return outcome;
}

bool Work::test() {
  raise_unless_ok(look());
  return complete_;
}

int Work::source() {
  int rank = 0;
  raise_unless_ok(unlocked([&] { return anycclWorkSource(operation_->work, &rank); }));
  return rank;
}

bool Work::done() {
  static_cast<void>(look());
  return complete_;
}

}  // namespace anyccl::python
