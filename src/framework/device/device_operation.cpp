#include "framework/device/device_operation.hpp"

#include "base/error.hpp"

namespace anyccl {
namespace {

using Calls = std::vector<std::shared_ptr<DeviceCall>>;

Result<bool> are_there(const Calls& calls) {
  for (const auto& call : calls) {
    ANYCCL_TRY(const bool there, call->is_there());
    if (!there) return false;
  }
  return true;
}

Status start(const Calls& calls, Status (DeviceCall::*copies)()) {
  for (const auto& call : calls) ANYCCL_CHECK(((*call).*copies)());
  return {};
}

}  // namespace

Status fail_by_device(Comm& comm, const Status& status) {
  const std::string& name = comm.membership().names[uindex(comm.rank())];
  Status named = error(status.code(), "{}: {}", name, status.message());
  comm.abort(named);
  return named;
}

DeviceOperation::DeviceOperation(std::shared_ptr<Comm> comm, std::shared_ptr<Operation> on_host,
                                 std::vector<std::shared_ptr<DeviceCall>> calls,
                                 std::chrono::milliseconds limit)
    : comm_(std::move(comm)), on_host_(std::move(on_host)), calls_(std::move(calls)) {
  keeps_limit(limit);
}

bool DeviceOperation::keeps_limit(std::chrono::milliseconds time) {
  const std::lock_guard lock(mutex_);
  if (is_opened_) return false;
  limit_ = time;
  deadline_ = time.count() > 0 ? Deadline::in(time) : Deadline::never();
  return true;
}

bool DeviceOperation::advance() {
  bool moved = false;
  while (!done()) {
    Result<bool> gone_on = go_on();
    if (!gone_on.ok()) {
      end(gone_on.status());
    } else if (!*gone_on) {
      return moved;
    }
    moved = true;
  }
  return moved;
}

Result<bool> DeviceOperation::go_on() {
  switch (stage_) {
    case Stage::turn: {
      if (on_host_->done()) return on_host_->status();  // the communicator has failed
      Result<bool> has_come = await_turn();
      if (!has_come.ok() || !*has_come) return has_come;
      const Status started = start(calls_, &DeviceCall::start_input);
      if (!started.ok()) return started;
      stage_ = Stage::input;
      return true;
    }
    case Stage::input: {
      ANYCCL_TRY(const bool there, are_there(calls_));
      if (!there) return false;
      open_gate();
      stage_ = Stage::call;
      return true;
    }
    case Stage::call: {
      if (!on_host_->done()) return false;
      const Status ended = on_host_->status().ok() ? comm_->failure() : on_host_->status();
      Status started = ended.ok() ? start(calls_, &DeviceCall::start_output) : ended;
      if (!started.ok()) return started;
      stage_ = Stage::output;
      return true;
    }
    case Stage::output: {
      ANYCCL_TRY(const bool there, are_there(calls_));
      if (there) end({});
      return there;
    }
  }
  return false;
}

/// Whether all streams have come to their calls.
Result<bool> DeviceOperation::await_turn() {
  ANYCCL_TRY(const bool there, are_there(calls_));
  const std::lock_guard lock(mutex_);
  if (!there && deadline_.passed())
    return error(Code::timeout, "the stream of the device has not come to the call within {} ms",
                 limit_.count());
  return there;
}

void DeviceOperation::open_gate() {
  std::unique_lock lock(mutex_);
  is_opened_ = true;
  const auto limit = limit_;
  lock.unlock();
  if (limit.count() > 0) static_cast<void>(comm_->limit(*on_host_, limit));
  comm_->open(*on_host_);
}

/// After an error of the device, or of its stream, peers must not wait for this rank.
void DeviceOperation::end(Status status) {
  const bool is_of_device = !on_host_->done() || status.code() == Code::device_error;
  if (!status.ok() && is_of_device && comm_->failure().ok())
    status = fail_by_device(*comm_, status);
  calls_.clear();  // nothing uses their memory any more
  complete(std::move(status));
  comm_->loop().wake();
  comm_->loop().ring();
}

}  // namespace anyccl
