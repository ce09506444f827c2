// The C interface: buffers in memory of a device.

#include "c/device/device_calls.hpp"

#include "base/deadline.hpp"
#include "base/error.hpp"
#include "framework/communicator/planning.hpp"
#include "platform/device/devices.hpp"

namespace anyccl {
namespace {

Status check_device_of(anycclStream_t stream, const anycclComm& comm) {
  if (stream == nullptr || stream->device == nullptr) return {};
  if (comm.copies == nullptr)
    return error(Code::invalid_usage,
                 "the stream is one of device {}, and the communicator has no device: "
                 "anycclCommSetDevice gives it one",
                 stream->device->number());
  if (stream->device != comm.copies->shared_device())
    return error(Code::invalid_argument,
                 "the stream is one of device {}, and the communicator has device {}",
                 stream->device->number(), comm.copies->device().number());
  return {};
}

/// The error of a call, or a stream, that is for memory of the host alone.
Status refuse(const DeviceCopies& copies, const char* where) {
  return error(Code::unsupported,
               "{} does not take buffers or streams of device {}: use the blocking call, also in a "
               "group or with a stream of anycclStreamWrap",
               where, copies.device().number());
}

/// The communicator fails, as its other ranks wait for this one: unless the call was wrong, and has
/// started nothing.
Status end_after(const Status& status, Comm& comm) {
  if (!status.ok() && status.code() != Code::invalid_argument &&
      status.code() != Code::invalid_usage)
    comm.abort(status);
  return status;
}

/// The question that a wait for the device asks: whether the communicator can be used, and `call`
/// has time left. Its time begins now.
DeviceCall::Usable usable_for(const Call& call, Comm& comm) {
  const auto limit = comm.membership().wait_limits.most_of(call.timeout);
  const Deadline deadline = limit.count() > 0 ? Deadline::in(limit) : Deadline::never();
  return [&comm, limit, deadline]() -> Status {
    comm.check_peers();
    ANYCCL_CHECK(comm.failure());
    if (!deadline.passed()) return {};
    return error(Code::timeout, "the stream of the device has not come to the call within {} ms",
                 limit.count());
  };
}

/// Runs the call between its copies, as far as there is no error.
Status run_around(DeviceCall& staged, Comm& comm) {
  ANYCCL_CHECK(end_after(staged.begin(usable_for(staged.call(), comm)), comm));
  ANYCCL_CHECK(comm.run(staged.call()));
  return end_after(staged.end(usable_for(staged.call(), comm)), comm);
}

/// The input is copied at the end of the group, before its calls start, and the result after them.
/// If the input does not come, the communicator fails, and so does this call, but no other.
void add_around(const std::shared_ptr<DeviceCall>& staged, anycclComm_t handle) {
  const std::shared_ptr<Comm> comm = handle->comm;
  add_to_group(handle, [staged, comm]() -> Status {
    const Status copied = staged->begin(usable_for(staged->call(), *comm));
    if (!copied.ok() && comm->failure().ok()) comm->abort(copied);
    return {};
  });
  add_to_group(handle, staged->call(), nullptr);
  add_after_group([staged, comm]() -> Status {
    ANYCCL_CHECK(comm->failure());
    return end_after(staged->end(usable_for(staged->call(), *comm)), *comm);
  });
}

/// CU_STREAM_PER_THREAD, which a call cannot use from another thread.
void* const kStreamPerThread = reinterpret_cast<void*>(2);

}  // namespace

Result<bool> run_on_device(const Call& call, anycclComm_t handle, anycclStream_t stream,
                           bool hands_over) {
  ANYCCL_CHECK(check_device_of(stream, *handle));
  const bool in_own_stream = stream != nullptr && stream->device != nullptr;
  Comm& comm = *handle->comm;
  const Status failed = comm.failure();
  const auto shape =
      failed.ok() ? Planning(comm).shape_of(call) : Result<BufferShape>(Status(failed));
  if (!shape.ok()) {  // as calls on memory of the host, which a group tells at its end
    if (!in_own_stream) return false;
    if (!in_group()) return shape.status();
    add_to_group(handle, call, nullptr);
    return true;
  }
  auto staged = DeviceCall::make(handle->copies, call, *shape, comm.rank(), comm.size(),
                                 in_own_stream ? stream->native : nullptr);
  ANYCCL_CHECK(end_after(staged.status(), comm));
  if (!in_own_stream && !(*staged)->copies_anything()) return false;
  if (!in_own_stream && stream != nullptr)
    return refuse(*handle->copies, "a stream of anycclStreamCreate");
  if (hands_over) return refuse(*handle->copies, "anycclRunFor");
  ANYCCL_CHECK(check_wait({.comm = &comm, .call = &call}));
  if (in_group()) return add_around(*staged, handle), true;
  ANYCCL_CHECK(run_around(**staged, comm));
  return true;
}

Status need_host_memory(const DeviceCopies* copies, std::initializer_list<const void*> buffers) {
  if (copies == nullptr || copies->is_inherited()) return {};
  ANYCCL_TRY(const DeviceScope scope, DeviceScope::enter(copies->device()));
  for (const void* const buffer : buffers) {
    if (buffer == nullptr) continue;
    ANYCCL_TRY(const MemoryFacts facts, copies->device().facts(buffer));
    if (facts.kind == MemoryKind::device) return refuse(*copies, "this call");
  }
  return {};
}

Status need_host_memory(anycclComm_t comm, std::initializer_list<const void*> buffers) {
  const Status status = need_host_memory(comm->copies.get(), buffers);
  return status.code() == Code::device_error ? end_after(status, *comm->comm) : status;
}

}  // namespace anyccl

using namespace anyccl;

anycclResult_t anycclCommSetDevice(anycclComm_t comm, int device) {
  return guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(need_comm(comm));
    ANYCCL_CHECK(need_no_group("anycclCommSetDevice"));
    std::shared_ptr<Device> used;
    if (device != ANYCCL_NO_DEVICE) {
      ANYCCL_TRY(used, open_device(device));
    }
    comm->set_device(used);
    return {};
  });
}

anycclResult_t anycclCommGetDevice(anycclComm_t comm, int* device) {
  return guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(need_comm(comm));
    ANYCCL_CHECK(need(device, "device"));
    *device = comm->copies == nullptr ? ANYCCL_NO_DEVICE : comm->copies->device().number();
    return {};
  });
}

anycclResult_t anycclStreamWrap(anycclStream_t* stream, int device, void* native) {
  return guarded(nullptr, [&]() -> Status {
    ANYCCL_CHECK(need(stream, "stream"));
    *stream = nullptr;
    if (native == kStreamPerThread)
      return error(Code::unsupported,
                   "cudaStreamPerThread is another stream in each thread, and groups have threads "
                   "of their own: pass a stream that the program has created");
    ANYCCL_TRY(auto used, open_device(device));
    *stream = new anycclStream{nullptr, std::move(used), static_cast<DeviceQueue>(native)};
    return {};
  });
}
