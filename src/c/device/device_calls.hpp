#pragma once
// Calls with buffers in memory of a device, or in a stream of one.

#include <initializer_list>

#include "c/handle.hpp"
#include "framework/device/device_call.hpp"

namespace anyccl {

/// Whether run_on_device() must look at the call.
inline bool may_be_on_device(const anycclComm& comm, anycclStream_t stream) {
  return comm.copies != nullptr || (stream != nullptr && stream->device != nullptr);
}

/// Runs the call, or adds it to the group, if its stream or one of its buffers is a device's.
/// Returns whether it has; else nothing has happened. Errors: see device.h.
Result<bool> run_on_device(const Call& call, anycclComm_t comm, anycclStream_t stream,
                           bool hands_over);

/// Errors: unsupported, if one of the buffers is memory of a device. `copies`: of the communicator;
/// null: it has no device.
Status need_host_memory(const DeviceCopies* copies, std::initializer_list<const void*> buffers);
/// Does the same for `comm`, which fails if its device does.
Status need_host_memory(anycclComm_t comm, std::initializer_list<const void*> buffers);

}  // namespace anyccl
