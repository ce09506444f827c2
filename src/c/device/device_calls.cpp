// The C interface: buffers in memory of a device.

#include "c/device/device_calls.hpp"

#include <algorithm>
#include <set>

#include "base/deadline.hpp"
#include "base/error.hpp"
#include "c/device/queued_calls.hpp"
#include "framework/communicator/planning.hpp"
#include "framework/device/issued_device_calls.hpp"
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
  return end_after(staged.end(), comm);
}

/// The input is copied at the end of the group, before its calls start, and the result after them.
/// If the input does not come, the communicator fails, and so does this call, but no other.
void add_around(const std::shared_ptr<DeviceCall>& staged, anycclComm_t handle) {
  const std::shared_ptr<Comm> comm = handle->comm;
  add_to_group(handle, [staged, comm]() -> Status {
    const Status copied = staged->begin(usable_for(staged->call(), *comm));
    if (!copied.ok() && comm->failure().ok()) static_cast<void>(fail_by_device(*comm, copied));
    return {};
  });
  add_to_group(handle, staged->call(), nullptr);
  add_after_group([staged, comm]() -> Status {
    ANYCCL_CHECK(comm->failure());
    return end_after(staged->end(), *comm);
  });
}

/// Errors: those of arguments that say nothing of memory, and of a communicator that has failed.
Result<BufferShape> shape_of(const Call& call, Comm& comm) {
  ANYCCL_CHECK(comm.failure());
  return Planning(comm).shape_of(call);
}

/// Does what stage() does, for a call with this shape, in a stream that fits the communicator.
Result<std::shared_ptr<DeviceCall>> stage_right(const Call& call, const BufferShape& shape,
                                                anycclComm& handle, anycclStream_t stream) {
  Comm& comm = *handle.comm;
  if (handle.copies == nullptr) return std::shared_ptr<DeviceCall>();
  auto staged =
      DeviceCall::make(handle.copies, call, shape, comm.rank(), comm.size(), queue_of(stream));
  ANYCCL_CHECK(end_after(staged.status(), comm));
  if (is_of_device(stream)) return staged;
  if (!(*staged)->copies_anything()) return std::shared_ptr<DeviceCall>();
  if (stream != nullptr) return refuse(*handle.copies, "a stream of anycclStreamCreate");
  return staged;
}

/// Without memory for what opens an operation's gate, the communicator fails: it would never open.
class GateKeeper {
 public:
  explicit GateKeeper(const CommPtr& comm) : comm_(comm) {}
  ~GateKeeper() {
    if (!is_kept_) comm_->abort(Status(Code::system_error, "no memory for a call on a device"));
  }
  GateKeeper(const GateKeeper&) = delete;
  GateKeeper& operator=(const GateKeeper&) = delete;
  void keep() { is_kept_ = true; }

 private:
  const CommPtr& comm_;
  bool is_kept_ = false;
};

/// Errors: in_progress, as of Comm::issue().
Result<std::shared_ptr<Operation>> issue_staged(std::shared_ptr<DeviceCall> staged,
                                                const CommPtr& comm, const Deadline& until = {}) {
  ANYCCL_CHECK(take_place(*staged, *comm));
  GateKeeper keeper(comm);
  Comm::IssuedCalls issued{comm->issue(staged->call(), Gate::closed_for_input(), until)};
  put_copies_around(issued, {std::move(staged)}, comm);
  keeper.keep();
  return std::move(issued.front());
}

/// Issues calls that are not for queues.
Result<Comm::IssuedCalls> issue_others(std::span<const Call> calls,
                                       std::span<const anycclStream_t> streams,
                                       anycclComm_t handle) {
  Comm& comm = *handle->comm;
  StagedCalls staged(calls.size());
  for (std::size_t i = 0; i < calls.size(); ++i) {
    ANYCCL_CHECK(check_device_of(streams[i], *handle));
    if (handle->copies != nullptr && shape_of(calls[i], comm).ok()) {
      ANYCCL_TRY(staged[i], stage(calls[i], handle, streams[i]));
    }  // else it fails when it is issued, if it has no shape
  }
  const bool is_any_staged = std::ranges::any_of(staged, [](auto& one) { return one != nullptr; });
  for (const auto& one : staged)
    if (one != nullptr) ANYCCL_CHECK(take_place(*one, comm));
  std::vector<const Call*> on_host;
  std::vector<Gate> gates;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    on_host.push_back(staged[i] == nullptr ? &calls[i] : &staged[i]->call());
    if (is_any_staged && !calls[i].is_point_to_point()) gates.push_back(gate_of(staged[i]));
  }
  GateKeeper keeper(handle->comm);
  if (!is_any_staged) keeper.keep();
  Comm::IssuedCalls collectives = comm.issue_all(on_host, gates), issued;
  auto next = collectives.begin();
  for (std::size_t i = 0; i < calls.size(); ++i)
    issued.push_back(calls[i].is_point_to_point() ? comm.issue(*on_host[i], gate_of(staged[i]))
                                                  : std::move(*next++));
  if (is_any_staged) put_copies_around(issued, staged, handle->comm);
  keeper.keep();
  return issued;
}

/// Some of the calls that are issued at once.
struct SomeCalls {
  std::vector<Call> calls;
  std::vector<anycclStream_t> streams;
  std::vector<std::size_t> places;  // among all of them

  void add(const Call& call, anycclStream_t stream, std::size_t place) {
    calls.push_back(call);
    streams.push_back(stream);
    places.push_back(place);
  }
  void give(Result<Comm::IssuedCalls> mine, Comm::IssuedCalls& all) const {
    for (std::size_t i = 0; i < places.size(); ++i)
      all[places[i]] = mine.ok() ? std::move((*mine)[i]) : mine.status();
  }
};

void* const kStreamLegacy = reinterpret_cast<void*>(1);  // another name of the default one, null
/// CU_STREAM_PER_THREAD, which a call cannot use from another thread.
void* const kStreamPerThread = reinterpret_cast<void*>(2);

}  // namespace

Status refuse(const DeviceCopies& copies, const char* where) {
  return error(Code::unsupported,
               "{} does not take buffers or streams of device {}: use a call that blocks, is in a "
               "group or issued, with a stream of anycclStreamWrap or none",
               where, copies.device().number());
}

Status end_after(const Status& status, Comm& comm) {
  if (status.ok() || status.code() == Code::invalid_argument ||
      status.code() == Code::invalid_usage || !comm.failure().ok())
    return status;
  return fail_by_device(comm, status);
}

Status wait_or_hand_over(std::shared_ptr<Operation> operation, Comm& comm,
                         Comm::Handover& handover) {
  Status status = comm.wait(*operation, handover.until());
  if (status.code() == Code::in_progress) handover.rest = std::move(operation);
  return status;
}

Result<bool> run_on_device(const Call& call, anycclComm_t handle, anycclStream_t stream,
                           Comm::Handover* handover) {
  ANYCCL_CHECK(check_device_of(stream, *handle));
  Comm& comm = *handle->comm;
  const auto shape = shape_of(call, comm);
  if (!shape.ok()) {  // as calls on memory of the host, which a group tells at its end
    if (!is_of_device(stream)) return false;
    if (!in_group()) return shape.status();
    add_to_group(handle, call, nullptr);
    return true;
  }
  ANYCCL_TRY(const bool queued, is_queued(call, *shape, *handle, stream));
  std::shared_ptr<DeviceCall> staged;
  if (!queued) {
    ANYCCL_TRY(staged, stage_right(call, *shape, *handle, stream));
  }
  if (staged == nullptr && !queued) return false;
  ANYCCL_CHECK(handover != nullptr ? check_wait({}) : check_wait({.comm = &comm, .call = &call}));
  if (queued) {
    ANYCCL_CHECK(run_queued(call, handle, stream, handover));
    return true;
  }
  if (in_group()) return add_around(staged, handle), true;
  if (handover != nullptr) {
    ANYCCL_TRY(auto operation, issue_staged(staged, handle->comm, handover->until()));
    ANYCCL_CHECK(wait_or_hand_over(std::move(operation), comm, *handover));
    return true;
  }
  ANYCCL_CHECK(run_around(*staged, comm));
  return true;
}

Result<std::shared_ptr<DeviceCall>> stage(const Call& call, anycclComm_t handle,
                                          anycclStream_t stream) {
  ANYCCL_CHECK(check_device_of(stream, *handle));
  ANYCCL_TRY(const BufferShape shape, shape_of(call, *handle->comm));
  return stage_right(call, shape, *handle, stream);
}

Result<std::shared_ptr<Operation>> issue_on_device(const Call& call, anycclComm_t handle,
                                                   anycclStream_t stream) {
  ANYCCL_CHECK(check_device_of(stream, *handle));
  ANYCCL_TRY(const BufferShape shape, shape_of(call, *handle->comm));
  ANYCCL_TRY(const bool queued, is_queued(call, shape, *handle, stream));
  if (queued) return issue_into_queues(call, *handle, stream);
  ANYCCL_TRY(auto staged, stage_right(call, shape, *handle, stream));
  if (staged == nullptr) return std::shared_ptr<Operation>();
  return issue_staged(std::move(staged), handle->comm);
}

Status take_place(DeviceCall& staged, Comm& comm) {
  ANYCCL_CHECK(IssuedDeviceCalls::of_process().start());
  return end_after(staged.take_place(), comm);
}

void put_copies_around(Comm::IssuedCalls& issued, const StagedCalls& staged, const CommPtr& comm) {
  GateKeeper keeper(comm);
  std::set<const Operation*> done;
  for (std::size_t first = 0; first < issued.size(); ++first) {
    if (staged[first] == nullptr || !issued[first].ok()) continue;
    const std::shared_ptr<Operation> on_host = *issued[first];
    if (done.contains(on_host.get()))
      continue;  // with an earlier call, which travels with this one
    const auto is_part = [&](std::size_t i) { return issued[i].ok() && *issued[i] == on_host; };
    StagedCalls parts;
    for (std::size_t i = first; i < issued.size(); ++i)
      if (is_part(i) && staged[i] != nullptr) parts.push_back(staged[i]);
    const auto limit = on_host->time_limit();
    if (limit.count() > 0) static_cast<void>(comm->limit(*on_host, {}));  // until its gate opens
    IssuedDeviceCalls::One one{
        std::make_shared<DeviceOperation>(comm, on_host, std::move(parts), limit)};
    for (std::size_t i = 0; i < issued.size(); ++i)
      if (is_part(i)) issued[i] = std::shared_ptr<Operation>(one.front());
    done.insert(one.front().get());
    IssuedDeviceCalls::of_process().add(std::move(one));
  }
  keeper.keep();
}

Result<Comm::IssuedCalls> issue_all(std::span<const Call> calls,
                                    std::span<const anycclStream_t> streams, anycclComm_t handle) {
  if (handle->device.queues == nullptr) return issue_others(calls, streams, handle);
  for (const anycclStream_t stream : streams) ANYCCL_CHECK(check_device_of(stream, *handle));
  Comm::IssuedCalls issued;
  SomeCalls messages, others;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const auto shape = shape_of(calls[i], *handle->comm);
    const auto queued =
        shape.ok() ? is_queued(calls[i], *shape, *handle, streams[i]) : Result<bool>(false);
    if (queued.ok() && *queued && !calls[i].is_point_to_point()) {
      issued.push_back(issue_into_queues(calls[i], *handle, streams[i]));
      continue;
    }
    issued.emplace_back(queued.ok() ? Status(Code::internal, "it is issued below")
                                    : queued.status());
    if (queued.ok()) (*queued ? messages : others).add(calls[i], streams[i], i);
  }
  if (!messages.calls.empty())
    messages.give(issue_into_queues(messages.calls, messages.streams, *handle), issued);
  if (!others.calls.empty())
    others.give(issue_others(others.calls, others.streams, handle), issued);
  return issued;
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
    if (comm->device.queues != nullptr)
      return error(Code::invalid_usage,
                   "the ranks use queues of their devices (anycclCommUseDeviceQueues): they keep "
                   "them until the communicator is destroyed");
    std::shared_ptr<Device> used;
    if (device != ANYCCL_NO_DEVICE) {
      ANYCCL_TRY(used, open_device(device));
    }
    comm->set_device(used == nullptr ? nullptr : std::make_shared<DeviceCopies>(used));
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
    if (native == kStreamLegacy) native = nullptr;
    *stream = new anycclStream{nullptr, std::move(used), static_cast<DeviceQueue>(native)};
    return {};
  });
}
