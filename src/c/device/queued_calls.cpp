// The C interface: calls in queues of devices.

#include "c/device/queued_calls.hpp"

#include "base/error.hpp"
#include "framework/communicator/planning.hpp"
#include "framework/device/device_queues.hpp"
#include "runtime/process/runtime.hpp"

namespace anyccl {
namespace {

/// Calls go there in the background, too, from now on.
std::shared_ptr<DeviceQueues> queues_of(anycclComm& handle) {
  handle.background_progress = true;
  return handle.device.queues.load(std::memory_order_relaxed)->shared_from_this();
}

/// `follower` and `until`: see DeviceQueues::put().
Result<std::shared_ptr<EnqueuedOperation>> put(const Call& call, DeviceQueues& queues,
                                               const CommPtr& comm, DeviceQueue program,
                                               Follower follower, const Deadline& until = {}) {
  auto put = queues.put(call, program, follower, until);
  if (put.status().code() == Code::in_progress) return put.status();
  ANYCCL_CHECK(end_after(put.status(), *comm));
  ANYCCL_CHECK(end_after(background_progress().add(comm), *comm));
  return put;
}

/// Begins messages, which go on in the background.
IssuedDeviceCalls::One begin_messages(const QueuedMessage::All& messages) {
  auto begun = QueuedMessage::begin(messages);
  for (const auto& message : messages) {
    if (!message->has_met()) continue;
    const CommPtr comm = message->shared_comm();
    static_cast<void>(end_after(background_progress().add(comm), *comm));
  }
  return begun;
}

/// What the caller gets of a message that was put into its queue.
Result<std::shared_ptr<EnqueuedOperation>> result_of(std::shared_ptr<QueuedMessage> message,
                                                     DeviceQueues& queues, Comm& comm) {
  auto put = queues.result_of(std::move(message));
  ANYCCL_CHECK(end_after(put.status(), comm));
  return put;
}

/// A stream waits for it from then on.
Result<std::shared_ptr<EnqueuedOperation>> put_message(const Call& call, anycclComm_t handle,
                                                       anycclStream_t stream) {
  const auto queues = queues_of(*handle);
  const QueuedMessage::All all{queues->message(call, queue_of(stream))};
  QueuedMessage::put_together(all, begin_messages(all));
  all.front()->put_rest();
  ANYCCL_TRY(auto put, result_of(all.front(), *queues, *handle->comm));
  if (stream != nullptr) ANYCCL_CHECK(end_after(put->hold(queue_of(stream)), *handle->comm));
  return put;
}

/// The messages of one group, which are put into their queues together.
struct GroupOfMessages {
  QueuedMessage::All all;
};

/// The one of this thread's open group, if it has messages.
GroupOfMessages& messages_of_group() {
  thread_local std::weak_ptr<GroupOfMessages> messages_here;
  auto group = messages_here.lock();
  if (group == nullptr) {
    group = std::make_shared<GroupOfMessages>();
    messages_here = group;
    add_to_group(group.get(), [group]() -> Status {
      QueuedMessage::put_together(group->all, begin_messages(group->all));
      return {};
    });
  }
  return *group;
}

/// Does the same as add_queued() with a message.
void add_message(const Call& call, anycclComm_t handle, anycclStream_t stream) {
  const auto queues = queues_of(*handle);
  const DeviceQueue program = queue_of(stream);
  const CommPtr comm = handle->comm;
  const auto message = queues->message(call, program);
  messages_of_group().all.push_back(message);
  add_between_in_group([=]() -> Status {
    ANYCCL_TRY(const auto operation, result_of(message, *queues, *comm));
    return stream == nullptr ? Status() : end_after(operation->hold(program), *comm);
  });
  if (stream == nullptr) add_after_group([=]() -> Status { return comm->wait(*message); });
}

/// It is put there at the end of the group, which waits for it if it has no stream. A stream waits
/// when all calls of the group are there: several may have one stream, also those of several ranks.
void add_queued(const Call& call, anycclComm_t handle, anycclStream_t stream) {
  const auto operation = std::make_shared<std::shared_ptr<EnqueuedOperation>>();
  const DeviceQueue program = queue_of(stream);
  const CommPtr comm = handle->comm;
  add_to_group(handle, [=, queues = queues_of(*handle)]() -> Status {
    ANYCCL_TRY(*operation, put(call, *queues, comm, program, Follower::next_call));
    return {};
  });
  if (stream != nullptr)
    add_between_in_group([=]() -> Status {  // null: it had an error
      return *operation == nullptr ? Status() : (*operation)->hold(program);
    });
  else
    add_after_group([=]() -> Status { return comm->wait(**operation); });
}

}  // namespace

Result<bool> is_queued(const Call& call, const BufferShape& shape, anycclComm& handle,
                       anycclStream_t stream) {
  DeviceQueues* const queues = handle.device.queues.load(std::memory_order_acquire);
  if (queues == nullptr) return false;
  Comm& comm = *handle.comm;
  const auto is_for_them = is_for_queues(*handle.copies, call, shape, comm.rank(), comm.size());
  ANYCCL_CHECK(end_after(is_for_them.status(), comm));
  if (!*is_for_them) return false;
  if (stream != nullptr && !is_of_device(stream))
    return refuse(*handle.copies, "a stream of anycclStreamCreate");
  return queues->takes(call);
}

Result<std::shared_ptr<Operation>> issue_into_queues(const Call& call, anycclComm& handle,
                                                     anycclStream_t stream) {
  const auto queues = queues_of(handle);
  if (call.is_point_to_point()) {
    const QueuedMessage::All all{queues->message(call, queue_of(stream))};
    QueuedMessage::put_first_parts(all, begin_messages(all));
    ANYCCL_TRY(auto put, result_of(all.front(), *queues, *handle.comm));
    return std::shared_ptr<Operation>(std::move(put));
  }
  ANYCCL_TRY(auto issued, put(call, *queues, handle.comm, queue_of(stream), Follower::none));
  return std::shared_ptr<Operation>(std::move(issued));
}

Result<Comm::IssuedCalls> issue_into_queues(std::span<const Call> messages,
                                            std::span<const anycclStream_t> streams,
                                            anycclComm& handle) {
  const auto queues = queues_of(handle);
  QueuedMessage::All all;
  for (std::size_t i = 0; i < messages.size(); ++i)
    all.push_back(queues->message(messages[i], queue_of(streams[i])));
  QueuedMessage::put_together(all, begin_messages(all));
  Comm::IssuedCalls issued;
  for (auto& message : all) {
    auto put = result_of(std::move(message), *queues, *handle.comm);
    if (put.ok())
      issued.emplace_back(std::shared_ptr<Operation>(*std::move(put)));
    else
      issued.emplace_back(put.status());
  }
  return issued;
}

Status run_queued(const Call& call, anycclComm_t handle, anycclStream_t stream,
                  Comm::Handover* handover) {
  if (in_group() && call.is_point_to_point()) return add_message(call, handle, stream), Status();
  if (in_group()) return add_queued(call, handle, stream), Status();
  ANYCCL_TRY(auto operation, call.is_point_to_point()
                                 ? put_message(call, handle, stream)
                                 : put(call, *queues_of(*handle), handle->comm, queue_of(stream),
                                       stream == nullptr ? Follower::none : Follower::program,
                                       handover == nullptr ? Deadline() : handover->until()));
  if (handover != nullptr) return wait_or_hand_over(std::move(operation), *handle->comm, *handover);
  return stream == nullptr ? handle->comm->wait(*operation) : Status();
}

}  // namespace anyccl

using namespace anyccl;

anycclResult_t anycclCommUseDeviceQueues(anycclComm_t comm) {
  return guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(need_comm(comm));
    ANYCCL_CHECK(need_no_group("anycclCommUseDeviceQueues"));
    ANYCCL_CHECK(check_wait({.comm = comm->comm.get()}));
    ANYCCL_CHECK(comm->comm->failure());
    if (comm->device.queues.load() != nullptr || comm->comm->size() == 1) return {};
    ANYCCL_TRY(auto made, DeviceQueues::make(comm->comm, comm->copies));
    comm->device.set_queues(std::move(made));
    return {};
  });
}

anycclResult_t anycclWorkGetDevice(anycclWork_t work, int* device) {
  return guarded(nullptr, [&]() -> Status {
    ANYCCL_CHECK(need(work, "work"));
    ANYCCL_CHECK(need(device, "device"));
    const auto* const queued = dynamic_cast<EnqueuedOperation*>(work->operation.get());
    *device = queued == nullptr ? ANYCCL_NO_DEVICE : queued->device().number();
    return {};
  });
}

anycclResult_t anycclWorkWaitStream(anycclWork_t work, anycclStream_t stream) {
  return guarded(nullptr, [&]() -> Status {
    ANYCCL_CHECK(need(work, "work"));
    ANYCCL_CHECK(need(stream, "stream"));
    if (stream->device == nullptr)
      return error(Code::invalid_usage, "stream is none of anycclStreamWrap, or was destroyed");
    ANYCCL_CHECK(work->comm->failure());
    auto* const on_device = dynamic_cast<EnqueuedOperation*>(work->operation.get());
    if (on_device != nullptr && &on_device->device() == stream->device.get() &&
        !work->operation->done())
      return on_device->hold(stream->native);
    ANYCCL_CHECK(check_wait({.operation = work->operation.get()}));
    return work->comm->wait(*work->operation);
  });
}
