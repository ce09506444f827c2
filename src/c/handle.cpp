#include "c/handle.hpp"

#include <utility>

#include "base/error.hpp"
#include "c/device/new_device.hpp"

void anycclComm::set(anyccl::CommPtr made) {
  agreement = nullptr;
  team = made == nullptr ? nullptr : std::make_shared<anyccl::Team>(made);
  comm = std::move(made);
  if (device.coming != nullptr) device.set_queues(std::exchange(device.coming, nullptr)->queues());
  if (comm != nullptr && stage == Stage::used) open.store(true, std::memory_order_seq_cst);
}

namespace anyccl {
namespace {

thread_local std::string last_error_here;

}  // namespace

anycclResult_t report(const Status& status, anycclComm_t handle) {
  last_error_here = status.message();
  if (handle != nullptr && !handle->is_inherited()) {
    const std::lock_guard lock(handle->mutex);
    handle->last_error = status.message();
  }
  if (status.code() != Code::in_progress) note_in_group(status);
  return static_cast<anycclResult_t>(status.code());
}

Status need(const void* pointer, const char* what) {
  if (pointer != nullptr) return {};
  return error(Code::invalid_argument, "{} is NULL", what);
}

Status need_vector(const void* x, std::size_t count, const char* what) {
  constexpr std::size_t kMost = std::size_t{1} << 46;  // elements, which no memory has
  if (count > kMost)
    return error(Code::invalid_argument, "count {} is negative or larger than any memory", count);
  if (x != nullptr || count == 0) return {};
  return error(Code::invalid_argument, "{} is NULL and count is {}", what, count);
}

Status need_no_group(const char* call) {
  if (!in_group()) return {};
  return error(Code::invalid_usage, "{} waits: it cannot be in a group", call);
}

Status check_wait_in_callback(const Awaited& awaited) {
  if (callback_here() == Callback::stream_function) return HostStream::check_wait(awaited);
  return error(
      Code::invalid_usage,
      "a reduction function must not call anyccl: its thread would wait for itself; make the call "
      "when the operation is complete");
}

Status check_tag(int tag) {
  if (tag >= 0 || tag < ANYCCL_LAYER_TAG(1 << 20)) return {};
  return error(Code::invalid_argument, "tag {} is not in 0..{}", tag, ANYCCL_MAX_TAG);
}

void adopt(anycclComm& handle) {
  std::unique_lock lock(handle.mutex);
  if (handle.stage != anycclComm::Stage::used) return;  // whoever ends it takes that
  if (handle.background.own == nullptr || !handle.background.own->done()) return;
  Result<CommPtr> made = handle.background.own->wait_for_result();
  handle.background.own = nullptr;
  handle.failure = made.status();
  if (made.ok() && *made != nullptr) return handle.set(*std::move(made));
  if (made.ok()) handle.finalized = true;
  lock.unlock();
  close_communicator(handle);
}

Status need_comm(anycclComm_t comm) {
  ANYCCL_CHECK(need(comm, "comm"));
  ANYCCL_CHECK(check_wait({}));
  if (comm->is_inherited())
    return error(
        Code::invalid_usage,
        "this communicator was created before fork; create it in the process that uses it");
  if (comm->open.load(std::memory_order_seq_cst)) return {};
  adopt(*comm);
  if (comm->open.load(std::memory_order_seq_cst)) return {};
  const std::lock_guard lock(comm->mutex);
  if (comm->finalized)
    return error(Code::invalid_usage, "the communicator is finalized: it can only be destroyed");
  if (!comm->failure.ok()) return comm->failure;
  if (comm->stage == anycclComm::Stage::ending)
    return error(Code::invalid_usage, "another thread destroys the communicator");
  return error(Code::invalid_usage,
               "the communicator is still being created: wait until anycclCommGetAsyncError says "
               "anycclSuccess");
}

}  // namespace anyccl

const char* anycclGetLastError(anycclComm_t comm) {
  if (comm == nullptr || comm->is_inherited()) return anyccl::last_error_here.c_str();
  static thread_local std::string copy;  // another thread may have the next error
  const std::lock_guard lock(comm->mutex);
  copy = comm->last_error;
  return copy.c_str();
}

const char* anycclGetErrorString(anycclResult_t result) {
  switch (result) {
    case anycclSuccess:
      return "no error";
    case anycclUnhandledDeviceError:
      return "a device call failed";
    case anycclSystemError:
      return "a system call failed";
    case anycclInternalError:
      return "an internal check failed: please report it";
    case anycclInvalidArgument:
      return "an argument is invalid";
    case anycclInvalidUsage:
      return "the ranks called different operations, or a call came at a wrong time";
    case anycclRemoteError:
      return "a peer failed or went away";
    case anycclInProgress:
      return "not finished yet";
    case anycclUnsupported:
      return "not supported";
    case anycclTimeout:
      return "the time limit has passed";
    case anycclAborted:
      return "the communicator was aborted";
    case anycclNumResults:
      break;
  }
  return "an unknown result code";
}
