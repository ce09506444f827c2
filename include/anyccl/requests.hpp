#pragma once
// What MPI programs know as requests (anyccl.hpp includes this): synchronous sends, probes, calls
// that are prepared once, and waiting for several operations. See docs/mpi.md.

#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "anyccl/anyccl.h"
#include "anyccl/communicator.hpp"
#include "anyccl/status.hpp"
#include "anyccl/stream.hpp"
#include "anyccl/types.hpp"
#include "anyccl/view.hpp"

namespace anyccl {

/// Communicator::send() that is complete only when the message has met its receive. See
/// anycclSsend.
inline Result<Work> ssend(Communicator& comm, View data, Rank to, const Stream& stream = {},
                          int tag = 0) {
  anycclCall_t call{};
  call.size = sizeof call;
  call.collective = anycclCollSend;
  call.sendbuff = data.data;
  call.count = data.count;
  call.datatype = static_cast<anycclDataType_t>(data.dtype);
  call.root = index(to);
  call.stream = stream.handle();
  call.tag = tag;
  call.synchronous = 1;
  call.timeout_ms = detail::milliseconds(comm.timeout());
  return comm.issue(call);
}

/// A message that has come and was not received yet.
struct MessageInfo {
  Rank source{};
  int tag = 0;
  DType dtype = DType::f32;
  std::size_t count = 0;  ///< Elements.
};

namespace detail {
inline MessageInfo message_of(const anycclMessage_t& found) {
  return {Rank{found.source}, found.tag, static_cast<DType>(found.datatype), found.count};
}
}  // namespace detail

/// Waits for a message that a recv() from `from`, which may be kAnySource, with `tag` would get
/// now. It stays where it is. See anycclProbe.
inline Result<MessageInfo> probe_message(Communicator& comm, Rank from, int tag = 0) {
  anycclMessage_t found{};
  const Status status =
      detail::status_of(anycclProbe(index(from), tag, comm.handle(), &found), comm.handle());
  if (!status.ok()) return status;
  return detail::message_of(found);
}
/// probe_message(), but in_progress if there is none after `milliseconds`.
inline Result<MessageInfo> probe_message_for(Communicator& comm, Rank from, unsigned milliseconds,
                                             int tag = 0) {
  anycclMessage_t found{};
  const Status status = detail::status_of(
      anycclProbeFor(index(from), tag, comm.handle(), milliseconds, &found), comm.handle());
  if (!status.ok()) return status;
  return detail::message_of(found);
}
/// probe_message() without waiting; nothing if there is none yet.
inline Result<std::optional<MessageInfo>> iprobe_message(Communicator& comm, Rank from,
                                                         int tag = 0) {
  anycclMessage_t found{};
  int flag = 0;
  const Status status = detail::status_of(
      anycclIprobe(index(from), tag, comm.handle(), &flag, &found), comm.handle());
  if (!status.ok()) return status;
  return flag != 0 ? std::optional(detail::message_of(found)) : std::optional<MessageInfo>();
}

/// Issues the receive of the next message with source and tag of one that a probe has found, if it
/// has its type and size, too; else nothing. `out`: of that type and size. See anycclRecvFound.
inline Result<std::optional<Work>> recv_found(Communicator& comm, View out,
                                              const MessageInfo& message) {
  if (out.dtype != message.dtype || out.count != message.count)
    return detail::refused(Code::invalid_argument, "out is not of the type or size of the message");
  const anycclMessage_t found{index(message.source), message.tag,
                              static_cast<anycclDataType_t>(message.dtype), message.count};
  anycclWork_t work = nullptr;
  const Status status =
      detail::status_of(anycclRecvFound(out.data, &found, comm.handle(), &work), comm.handle());
  if (!status.ok()) return status;
  return work != nullptr ? std::optional(Work(work)) : std::optional<Work>();
}

/// A call that was checked and planned once. Any thread.
class PersistentCall {
 public:
  PersistentCall() = default;
  explicit PersistentCall(anycclPrepared_t handle) : handle_(handle) {}
  PersistentCall(PersistentCall&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)) {}
  PersistentCall& operator=(PersistentCall&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  PersistentCall(const PersistentCall&) = delete;
  PersistentCall& operator=(const PersistentCall&) = delete;
  ~PersistentCall() { static_cast<void>(anycclPreparedFree(handle_)); }

  /// As Communicator::issue() of its call. See anycclStart.
  Result<Work> start() {
    anycclWork_t work = nullptr;
    const Status status = detail::status_of(anycclStart(handle_, &work));
    if (!status.ok()) return status;
    return Work(work);
  }
  anycclPrepared_t handle() const { return handle_; }

 private:
  anycclPrepared_t handle_ = nullptr;
};

/// Checks and keeps a call, whose `size` is set, with copies of its arrays. Local. See
/// anycclPrepare.
inline Result<PersistentCall> prepare(Communicator& comm, const anycclCall_t& call) {
  anycclPrepared_t prepared = nullptr;
  const Status status =
      detail::status_of(anycclPrepare(&call, comm.handle(), &prepared), comm.handle());
  if (!status.ok()) return status;
  return PersistentCall(prepared);
}
/// Starts all, as a group; the works are parallel to them. See anycclStartAll. After an error, what
/// was started goes on.
inline Result<std::vector<Work>> start_all(std::span<const PersistentCall> prepared) {
  std::vector<anycclPrepared_t> handles;
  for (const PersistentCall& one : prepared) handles.push_back(one.handle());
  std::vector<anycclWork_t> started(handles.size());
  const Status status =
      detail::status_of(anycclStartAll(handles.data(), handles.size(), started.data()));
  std::vector<Work> works;
  for (anycclWork_t work : started) works.emplace_back(work);
  if (!status.ok()) return status;
  return works;
}

/// Which of several works is complete, and what became of it.
struct Completed {
  std::size_t index = 0;  ///< Their number: none is, or all are empty.
  Status status;
};

namespace detail {
inline std::vector<anycclWork_t> handles_of(std::span<const Work> works) {
  std::vector<anycclWork_t> handles;
  for (const Work& work : works) handles.push_back(work.handle());
  return handles;
}
}  // namespace detail

/// Returns when all are complete, with the first error. Empty works are left out here and below.
inline Status wait_all(std::span<const Work> works) {
  const std::vector<anycclWork_t> handles = detail::handles_of(works);
  return detail::status_of(anycclWorkWaitAll(handles.data(), handles.size()));
}
/// Returns when one is complete. `works[i] = Work()` leaves it out from then on.
inline Completed wait_any(std::span<const Work> works) {
  const std::vector<anycclWork_t> handles = detail::handles_of(works);
  Completed first;
  first.status = detail::status_of(anycclWorkWaitAny(handles.data(), handles.size(), &first.index));
  return first;
}
/// wait_any(), but in_progress if there are some and none is complete after `milliseconds`.
inline Completed wait_any_for(std::span<const Work> works, unsigned milliseconds) {
  const std::vector<anycclWork_t> handles = detail::handles_of(works);
  Completed first;
  first.status = detail::status_of(
      anycclWorkWaitAnyFor(handles.data(), handles.size(), milliseconds, &first.index));
  return first;
}
/// wait_any() without waiting: in_progress if there are some and none is complete. Makes progress.
inline Completed test_any(std::span<const Work> works) {
  const std::vector<anycclWork_t> handles = detail::handles_of(works);
  Completed first;
  int done = 0;
  first.status =
      detail::status_of(anycclWorkTestAny(handles.data(), handles.size(), &first.index, &done));
  if (done == 0) first.status = Status(Code::in_progress, "none of the works is complete yet");
  return first;
}

}  // namespace anyccl
