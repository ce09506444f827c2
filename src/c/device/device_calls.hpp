#pragma once
// Calls with buffers in memory of a device, or in a stream of one.

#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "c/handle.hpp"
#include "framework/device/device_call.hpp"

namespace anyccl {

inline bool is_of_device(anycclStream_t stream) {
  return stream != nullptr && stream->device != nullptr;
}
/// The default stream is null.
inline DeviceQueue queue_of(anycclStream_t stream) {
  return is_of_device(stream) ? stream->native : nullptr;
}
/// The error of a call, or a stream, that is for memory of the host alone.
Status refuse(const DeviceCopies& copies, const char* where);
/// The communicator fails, as its other ranks wait for this one: unless the call was wrong, and has
/// started nothing.
Status end_after(const Status& status, Comm& comm);
/// Waits for the operation as long as the caller has time; then it goes on as `handover.rest`.
Status wait_or_hand_over(std::shared_ptr<Operation> operation, Comm& comm,
                         Comm::Handover& handover);

/// Whether run_on_device() must look at the call.
inline bool may_be_on_device(const anycclComm& comm, anycclStream_t stream) {
  return comm.copies != nullptr || is_of_device(stream);
}

/// Runs the call, or adds it to the group, if its stream or one of its buffers is a device's.
/// Returns whether it has; else nothing has happened. `handover`: null, or as Comm::run() has it.
/// Errors: see device.h.
Result<bool> run_on_device(const Call& call, anycclComm_t comm, anycclStream_t stream,
                           Comm::Handover* handover);
/// Issues such a call; null: it is none. Errors: see device.h.
Result<std::shared_ptr<Operation>> issue_on_device(const Call& call, anycclComm_t comm,
                                                   anycclStream_t stream);

/// Calls, and beside each what it is on memory of the host; null: itself.
using StagedCalls = std::vector<std::shared_ptr<DeviceCall>>;
/// Gives one that is to be issued its place in its stream.
Status take_place(DeviceCall& staged, Comm& comm);
inline Gate gate_of(const std::shared_ptr<DeviceCall>& staged) {
  return staged == nullptr ? Gate::open : Gate::closed_for_input();
}
/// Replaces operations of which some call is staged by those that have copies around them. The
/// calls have their places, and were issued with gate_of() as their gates.
void put_copies_around(Comm::IssuedCalls& issued, const StagedCalls& staged, const CommPtr& comm);

/// The call between its copies, to be started often; null: neither its stream nor a buffer is a
/// device's. Errors: those of the call, too.
Result<std::shared_ptr<DeviceCall>> stage(const Call& call, anycclComm_t comm,
                                          anycclStream_t stream);
/// Issues all of them: as Comm::issue_all(), and messages as Comm::issue(). The results and
/// `streams`, which are null or a device's, are parallel to them. Errors: none was issued.
Result<Comm::IssuedCalls> issue_all(std::span<const Call> calls,
                                    std::span<const anycclStream_t> streams, anycclComm_t comm);

/// Errors: unsupported, if one of the buffers is memory of a device. `copies`: of the communicator;
/// null: it has no device.
Status need_host_memory(const DeviceCopies* copies, std::initializer_list<const void*> buffers);
/// Does the same for `comm`, which fails if its device does.
Status need_host_memory(anycclComm_t comm, std::initializer_list<const void*> buffers);

}  // namespace anyccl
