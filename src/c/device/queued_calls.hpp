#pragma once
// Calls of communicators that use queues of devices: see anycclCommUseDeviceQueues().

#include <memory>

#include "c/device/device_calls.hpp"

namespace anyccl {

/// Whether it is done in queues of the device. Errors: of its buffers, stream and arguments.
Result<bool> is_queued(const Call& call, const BufferShape& shape, anycclComm& handle,
                       anycclStream_t stream);
/// Puts such a call there; no stream waits for it.
Result<std::shared_ptr<Operation>> issue_into_queues(const Call& call, anycclComm& handle,
                                                     anycclStream_t stream);
/// Puts such messages there together, as those of a group. The results are parallel to them.
Result<Comm::IssuedCalls> issue_into_queues(std::span<const Call> messages,
                                            std::span<const anycclStream_t> streams,
                                            anycclComm& handle);
/// Runs such a call, or adds it to the group: with a stream it is left to the queues, unless the
/// caller has a time for it. Without one the caller waits, and the default stream does not: ranks
/// that share a device share that, and it would wait for one before it has come to the other.
Status run_queued(const Call& call, anycclComm_t handle, anycclStream_t stream,
                  Comm::Handover* handover);

}  // namespace anyccl
