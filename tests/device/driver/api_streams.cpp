// Streams, events, capture, and functions of the host.

#include <set>
#include <shared_mutex>

#include "calls.hpp"
#include "contexts.hpp"
#include "faults.hpp"
#include "settings.hpp"

using namespace anyccl::cuda;
using namespace anyccl::simulated;

struct anyccl::cuda::EventTag {
  bool has_time = true;
  std::mutex mutex;  ///< Guards the ticket.
  TicketPtr latest;  ///< The work where it was last recorded; null: it never was.
};

namespace {

/// Events are never deleted, so that a handle that was destroyed is no other event's. Looking up
/// takes a shared lock, so that it orders no threads.
struct Events {
  std::shared_mutex mutex;
  std::set<Event> living, destroyed;
};
Events& events() {
  static Events& all = *new Events;
  return all;
}

bool is_event(Event event) {
  Events& all = events();
  const std::shared_lock lock(all.mutex);
  return all.living.contains(event);
}

/// Null if the event was never recorded.
TicketPtr latest_of(Event event) {
  const std::lock_guard lock(event->mutex);
  return event->latest;
}

Error after_waiting() {
  return is_lost() ? kLaunchFailed : kSuccess;
}

}  // namespace

Error cuStreamCreateWithPriority(Stream* stream, unsigned flags, int priority) {
  ANYCCL_SIMULATED_ENTER(context, kOutOfMemory);
  if (stream == nullptr || flags > kStreamNonBlocking) return kInvalidValue;
  *stream = make_stream(current_context(), (flags & kStreamNonBlocking) == 0, priority);
  return kSuccess;
}

Error cuStreamDestroy_v2(Stream stream) {
  ANYCCL_SIMULATED_ENTER(driver, kUnknown);
  return destroy_stream(stream);
}

Error cuStreamQuery(Stream handle) {
  ANYCCL_SIMULATED_ENTER(device, kUnknown);
  Stream stream = nullptr;
  if (const Error error = resolve(handle, stream); error != kSuccess) return error;
  if (stream->capturing.load(std::memory_order_relaxed)) return kCaptureUnsupported;
  const TicketPtr tail = tail_of(stream);
  return tail == nullptr || tail->is_done() ? kSuccess : kNotReady;
}

Error cuStreamSynchronize(Stream handle) {
  ANYCCL_SIMULATED_ENTER(device, kUnknown);
  Stream stream = nullptr;
  if (const Error error = resolve(handle, stream); error != kSuccess) return error;
  if (stream->capturing.load(std::memory_order_relaxed)) return kCaptureUnsupported;
  if (const TicketPtr tail = tail_of(stream)) wait_for(tail);
  host_time() += settings().model.sync;
  return after_waiting();
}

Error cuStreamWaitEvent(Stream stream, Event event, unsigned) {
  ANYCCL_SIMULATED_ENTER(device, kUnknown);
  if (!is_event(event)) return kInvalidHandle;
  const TicketPtr ticket = latest_of(event);
  if (ticket != nullptr) return push(stream, nullptr, {ticket});
  return resolve(stream, stream);
}

Error cuStreamBeginCapture_v2(Stream handle, int) {
  ANYCCL_SIMULATED_ENTER(device, kUnknown);
  Stream stream = nullptr;
  if (const Error error = resolve(handle, stream); error != kSuccess) return error;
  if (stream == stream->context->null_stream) return kCaptureUnsupported;
  return stream->capturing.exchange(true, std::memory_order_relaxed) ? kIllegalState : kSuccess;
}

Error cuStreamEndCapture(Stream handle, void** graph) {
  ANYCCL_SIMULATED_ENTER(device, kUnknown);
  Stream stream = nullptr;
  if (const Error error = resolve(handle, stream); error != kSuccess) return error;
  if (graph == nullptr) return kInvalidValue;
  if (!stream->capturing.exchange(false, std::memory_order_relaxed)) return kIllegalState;
  *graph = nullptr;
  return kSuccess;
}

Error cuStreamIsCapturing(Stream handle, int* status) {
  ANYCCL_SIMULATED_ENTER(device, kUnknown);
  Stream stream = nullptr;
  if (const Error error = resolve(handle, stream); error != kSuccess) return error;
  if (status == nullptr) return kInvalidValue;
  if (stream == stream->context->null_stream && is_implicitly_captured(stream))
    return kCaptureImplicit;
  *status = stream->capturing.load(std::memory_order_relaxed) ? 1 : 0;
  return kSuccess;
}

Error cuLaunchHostFunc(Stream handle, HostFunction function, void* argument) {
  ANYCCL_SIMULATED_ENTER(device, kUnknown);
  if (function == nullptr) return kInvalidValue;
  Stream stream = nullptr;
  if (const Error error = resolve(handle, stream); error != kSuccess) return error;
  return push(stream, [=, context = stream->context](double start) {
    const std::lock_guard one_at_a_time(context->functions);
    host_time() = start + settings().model.hostfn;
    is_in_host_function() = true;
    function(argument);
    is_in_host_function() = false;
    return host_time();
  });
}

Error cuEventCreate(Event* event, unsigned flags) {
  ANYCCL_SIMULATED_ENTER(context, kOutOfMemory);
  if (event == nullptr) return kInvalidValue;
  auto* const made = new EventTag;
  made->has_time = (flags & kEventDisableTiming) == 0;
  Events& all = events();
  const std::unique_lock lock(all.mutex);
  all.living.insert(made);
  *event = made;
  return kSuccess;
}

Error cuEventDestroy_v2(Event event) {
  ANYCCL_SIMULATED_ENTER(driver, kUnknown);
  Events& all = events();
  const std::unique_lock lock(all.mutex);
  if (all.living.erase(event) == 0) return kInvalidHandle;
  all.destroyed.insert(event);
  const std::lock_guard own(event->mutex);
  event->latest = nullptr;
  return kSuccess;
}

Error cuEventRecord(Event event, Stream stream) {
  ANYCCL_SIMULATED_ENTER(device, kUnknown);
  if (!is_event(event)) return kInvalidHandle;
  TicketPtr ticket;
  if (const Error error = push(stream, nullptr, {}, &ticket); error != kSuccess) return error;
  const std::lock_guard lock(event->mutex);
  event->latest = std::move(ticket);
  return kSuccess;
}

Error cuEventQuery(Event event) {
  ANYCCL_SIMULATED_ENTER(device, kUnknown);
  if (!is_event(event)) return kInvalidHandle;
  const TicketPtr ticket = latest_of(event);
  if (ticket == nullptr) return kSuccess;
  if (!ticket->is_done()) return kNotReady;
  wait_for(ticket);
  host_time() += settings().model.poll;
  return after_waiting();
}

Error cuEventSynchronize(Event event) {
  ANYCCL_SIMULATED_ENTER(device, kUnknown);
  if (!is_event(event)) return kInvalidHandle;
  if (const TicketPtr ticket = latest_of(event)) wait_for(ticket);
  host_time() += settings().model.sync;
  return after_waiting();
}

Error cuEventElapsedTime_v2(float* milliseconds, Event begin, Event end) {
  ANYCCL_SIMULATED_ENTER(device, kUnknown);
  if (!is_event(begin) || !is_event(end) || !begin->has_time || !end->has_time)
    return kInvalidHandle;
  const TicketPtr first = latest_of(begin), last = latest_of(end);
  if (milliseconds == nullptr) return kInvalidValue;
  if (first == nullptr || last == nullptr) return kInvalidHandle;
  if (!first->is_done() || !last->is_done()) return kNotReady;
  *milliseconds = static_cast<float>((last->time() - first->time()) / 1e6);
  return kSuccess;
}
