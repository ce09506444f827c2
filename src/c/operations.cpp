// The C interface: collectives, point to point and works.

#include "algorithm/schedule/contract.hpp"
#include "base/error.hpp"
#include "c/calls.hpp"
#include "c/device/device_calls.hpp"

namespace anyccl {
namespace {

/// Puts it in order at once; it starts when the stream comes to it.
Result<std::shared_ptr<Operation>> issue_in_stream(const Call& call, anycclComm_t comm,
                                                   anycclStream_t stream) {
  ANYCCL_TRY(Batch batch, Batch::make(stream->stream, 1));
  return batch.issue(comm->comm, call);
}

/// In a group adds the call to that; else issues it in the stream.
Status launch_in_stream(const Call& call, anycclComm_t comm, anycclStream_t stream) {
  ANYCCL_CHECK(need_stream(stream));
  if (in_group()) return add_to_group(comm, call, stream), Status{};
  return issue_in_stream(call, comm, stream).status();
}

/// Checks what only the C interface can get wrong, then launches the call in the stream, if there
/// is one; else runs it, or adds it to the group. `handover`: of a call that is run.
anycclResult_t run_or_add(const Call& call, anycclComm_t comm, anycclStream_t stream,
                          Comm::Handover* handover = nullptr) noexcept {
  return guarded(comm, [&]() -> Status {
    if (comm == nullptr || !comm->open.load(std::memory_order_seq_cst))
      ANYCCL_CHECK(need_comm(comm));
    if (may_be_on_device(*comm, stream)) {
      ANYCCL_TRY(const bool was_run, run_on_device(call, comm, stream, handover));
      if (was_run) return {};
    }
    if (stream != nullptr) return launch_in_stream(call, comm, stream);
    if (callback_here() != Callback::none)
      ANYCCL_CHECK(handover != nullptr ? check_wait({})
                                       : check_wait({.comm = comm->comm.get(), .call = &call}));
    if (!in_group()) return comm->comm->run(call, handover);
    add_to_group(comm, call, nullptr);
    return {};
  });
}

/// Does what make_work() does, and notes in the handle that the background thread may have its
/// communicator.
Result<anycclWork_t> work_of(anycclComm_t comm, std::shared_ptr<Operation> operation,
                             const Call& call) {
  if (!operation->done()) comm->background_progress = true;
  return make_work(comm->comm, std::move(operation), call.collective);
}

/// Nobody waits for a thread whose slice has failed: neither the rest of its team nor their peers.
/// An error after which no communicator has failed, as of arguments, ends nothing.
Status end_team(anycclComm& handle, const Status& why, int thread, int threads) {
  std::unique_lock lock(handle.mutex);
  const std::shared_ptr<Team> team = handle.team;  // null if another thread aborts it
  lock.unlock();
  if (team == nullptr || !team->end(why)) return why;
  return error(why.code(), "{}; in the slice of thread {} of {}", why.message(), thread, threads);
}

}  // namespace

anycclResult_t launch(const Call& call, anycclComm_t comm, anycclStream_t stream) noexcept {
  return run_or_add(call, comm, stream);
}

Result<Call> read_call(const anycclCall_t* asked, anycclComm_t comm) {
  ANYCCL_CHECK(need(asked, "call"));
  if (asked->size != sizeof(anycclCall_t))
    return error(Code::invalid_argument,
                 "call.size is {} instead of {}: set it to sizeof(anycclCall_t)", asked->size,
                 sizeof(anycclCall_t));
  if (asked->collective < anycclCollAllReduce || asked->collective >= anycclNumCollectives)
    return error(Code::invalid_argument, "call.collective is {}",
                 static_cast<int>(asked->collective));
  const auto what = static_cast<Collective>(asked->collective);
  Call call = make_call(what, asked->sendbuff, asked->recvbuff, asked->count, asked->datatype,
                        is_rooted(what) ? asked->root : 0, number_of(asked->op, comm));
  call.send_counts = asked->sendcounts, call.send_displs = asked->sdispls;
  call.recv_counts = asked->recvcounts, call.recv_displs = asked->rdispls;
  call.tag = static_cast<std::uint32_t>(asked->tag);
  if (call.is_point_to_point()) ANYCCL_CHECK(check_tag(asked->tag));
  call.timeout = std::chrono::milliseconds(asked->timeout_ms);
  ANYCCL_CHECK(configure(asked->config, comm, call));
  call.synchronous = what == Collective::send && asked->synchronous != 0;
  return call;
}

}  // namespace anyccl

using namespace anyccl;

anycclResult_t anycclAllReduce(const void* sendbuff, void* recvbuff, size_t count,
                               anycclDataType_t datatype, anycclRedOp_t op, anycclComm_t comm,
                               anycclStream_t stream) {
  return run_or_add(make_call(Collective::all_reduce, sendbuff, recvbuff, count, datatype, 0,
                              number_of(op, comm)),
                    comm, stream);
}

anycclResult_t anycclAllReducePart(const void* sendbuff, void* recvbuff, size_t count,
                                   anycclDataType_t datatype, anycclRedOp_t op, anycclComm_t comm,
                                   int thread, int threads) {
  const Call call = make_call(Collective::all_reduce, sendbuff, recvbuff, count, datatype, 0,
                              number_of(op, comm));
  return guarded(comm, [&]() -> Status {
    if (comm == nullptr || !comm->open.load(std::memory_order_seq_cst))
      ANYCCL_CHECK(need_comm(comm));
    if (in_group())
      return error(Code::invalid_usage, "anycclAllReducePart waits: it cannot be in a group");
    ANYCCL_CHECK(need_host_memory(comm, {sendbuff, recvbuff}));
    ANYCCL_CHECK(check_wait({.comm = comm->comm.get(), .call = &call}));
    const Status status = comm->team->run(call, thread, threads);
    return status.ok() ? status : end_team(*comm, status, thread, threads);
  });
}

anycclResult_t anycclBroadcast(const void* sendbuff, void* recvbuff, size_t count,
                               anycclDataType_t datatype, int root, anycclComm_t comm,
                               anycclStream_t stream) {
  return run_or_add(make_call(Collective::broadcast, sendbuff, recvbuff, count, datatype, root),
                    comm, stream);
}

anycclResult_t anycclBcast(void* buff, size_t count, anycclDataType_t datatype, int root,
                           anycclComm_t comm, anycclStream_t stream) {
  return anycclBroadcast(buff, buff, count, datatype, root, comm, stream);
}

anycclResult_t anycclReduce(const void* sendbuff, void* recvbuff, size_t count,
                            anycclDataType_t datatype, anycclRedOp_t op, int root,
                            anycclComm_t comm, anycclStream_t stream) {
  return run_or_add(
      make_call(Collective::reduce, sendbuff, recvbuff, count, datatype, root, number_of(op, comm)),
      comm, stream);
}

anycclResult_t anycclReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount,
                                   anycclDataType_t datatype, anycclRedOp_t op, anycclComm_t comm,
                                   anycclStream_t stream) {
  return run_or_add(make_call(Collective::reduce_scatter, sendbuff, recvbuff, recvcount, datatype,
                              0, number_of(op, comm)),
                    comm, stream);
}

anycclResult_t anycclScan(const void* sendbuff, void* recvbuff, size_t count,
                          anycclDataType_t datatype, anycclRedOp_t op, anycclComm_t comm,
                          anycclStream_t stream) {
  return run_or_add(
      make_call(Collective::scan, sendbuff, recvbuff, count, datatype, 0, number_of(op, comm)),
      comm, stream);
}

anycclResult_t anycclExscan(const void* sendbuff, void* recvbuff, size_t count,
                            anycclDataType_t datatype, anycclRedOp_t op, anycclComm_t comm,
                            anycclStream_t stream) {
  return run_or_add(
      make_call(Collective::exscan, sendbuff, recvbuff, count, datatype, 0, number_of(op, comm)),
      comm, stream);
}

anycclResult_t anycclAllGather(const void* sendbuff, void* recvbuff, size_t sendcount,
                               anycclDataType_t datatype, anycclComm_t comm,
                               anycclStream_t stream) {
  return run_or_add(make_call(Collective::all_gather, sendbuff, recvbuff, sendcount, datatype),
                    comm, stream);
}

anycclResult_t anycclGather(const void* sendbuff, void* recvbuff, size_t count,
                            anycclDataType_t datatype, int root, anycclComm_t comm,
                            anycclStream_t stream) {
  return run_or_add(make_call(Collective::gather, sendbuff, recvbuff, count, datatype, root), comm,
                    stream);
}

anycclResult_t anycclScatter(const void* sendbuff, void* recvbuff, size_t count,
                             anycclDataType_t datatype, int root, anycclComm_t comm,
                             anycclStream_t stream) {
  return run_or_add(make_call(Collective::scatter, sendbuff, recvbuff, count, datatype, root), comm,
                    stream);
}

anycclResult_t anycclAllToAll(const void* sendbuff, void* recvbuff, size_t count,
                              anycclDataType_t datatype, anycclComm_t comm, anycclStream_t stream) {
  return run_or_add(make_call(Collective::all_to_all, sendbuff, recvbuff, count, datatype), comm,
                    stream);
}

anycclResult_t anycclAlltoAll(const void* sendbuff, void* recvbuff, size_t count,
                              anycclDataType_t datatype, anycclComm_t comm, anycclStream_t stream) {
  return anycclAllToAll(sendbuff, recvbuff, count, datatype, comm, stream);
}

anycclResult_t anycclAllToAllv(const void* sendbuff, const size_t sendcounts[],
                               const size_t sdispls[], void* recvbuff, const size_t recvcounts[],
                               const size_t rdispls[], anycclDataType_t datatype, anycclComm_t comm,
                               anycclStream_t stream) {
  Call call = make_call(Collective::all_to_all_v, sendbuff, recvbuff, 0, datatype);
  call.send_counts = sendcounts, call.send_displs = sdispls;
  call.recv_counts = recvcounts, call.recv_displs = rdispls;
  return run_or_add(call, comm, stream);
}

anycclResult_t anycclAllGatherv(const void* sendbuff, size_t sendcount, void* recvbuff,
                                const size_t recvcounts[], const size_t rdispls[],
                                anycclDataType_t datatype, anycclComm_t comm,
                                anycclStream_t stream) {
  Call call = make_call(Collective::all_gather_v, sendbuff, recvbuff, sendcount, datatype);
  call.recv_counts = recvcounts, call.recv_displs = rdispls;
  return run_or_add(call, comm, stream);
}

anycclResult_t anycclReduceScatterv(const void* sendbuff, const size_t sendcounts[],
                                    const size_t sdispls[], void* recvbuff, size_t recvcount,
                                    anycclDataType_t datatype, anycclRedOp_t op, anycclComm_t comm,
                                    anycclStream_t stream) {
  Call call = make_call(Collective::reduce_scatter_v, sendbuff, recvbuff, recvcount, datatype, 0,
                        number_of(op, comm));
  call.send_counts = sendcounts, call.send_displs = sdispls;
  return run_or_add(call, comm, stream);
}

anycclResult_t anycclGatherv(const void* sendbuff, size_t sendcount, void* recvbuff,
                             const size_t recvcounts[], const size_t rdispls[],
                             anycclDataType_t datatype, int root, anycclComm_t comm,
                             anycclStream_t stream) {
  Call call = make_call(Collective::gather_v, sendbuff, recvbuff, sendcount, datatype, root);
  call.recv_counts = recvcounts, call.recv_displs = rdispls;
  return run_or_add(call, comm, stream);
}

anycclResult_t anycclScatterv(const void* sendbuff, const size_t sendcounts[],
                              const size_t sdispls[], void* recvbuff, size_t recvcount,
                              anycclDataType_t datatype, int root, anycclComm_t comm,
                              anycclStream_t stream) {
  Call call = make_call(Collective::scatter_v, sendbuff, recvbuff, recvcount, datatype, root);
  call.send_counts = sendcounts, call.send_displs = sdispls;
  return run_or_add(call, comm, stream);
}

anycclResult_t anycclBarrier(anycclComm_t comm, anycclStream_t stream) {
  return run_or_add(make_call(Collective::barrier, nullptr, nullptr, 0, anycclFloat32), comm,
                    stream);
}

anycclResult_t anycclSend(const void* sendbuff, size_t count, anycclDataType_t datatype, int peer,
                          anycclComm_t comm, anycclStream_t stream) {
  return run_or_add(make_call(Collective::send, sendbuff, nullptr, count, datatype, peer), comm,
                    stream);
}

anycclResult_t anycclSsend(const void* sendbuff, size_t count, anycclDataType_t datatype, int peer,
                           anycclComm_t comm, anycclStream_t stream) {
  Call call = make_call(Collective::send, sendbuff, nullptr, count, datatype, peer);
  call.synchronous = true;
  return launch(call, comm, stream);
}

anycclResult_t anycclRecv(void* recvbuff, size_t count, anycclDataType_t datatype, int peer,
                          anycclComm_t comm, anycclStream_t stream) {
  return run_or_add(make_call(Collective::recv, nullptr, recvbuff, count, datatype, peer), comm,
                    stream);
}

anycclResult_t anycclRun(const anycclCall_t* asked, anycclComm_t comm) {
  Call call;
  const anycclResult_t result = guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(need_comm(comm));
    ANYCCL_TRY(call, read_call(asked, comm));
    return {};
  });
  return result != anycclSuccess ? result : run_or_add(call, comm, asked->stream);
}

anycclResult_t anycclRunFor(const anycclCall_t* asked, anycclComm_t comm, unsigned int wait_ms,
                            anycclWork_t* work) {
  Call call;
  anycclResult_t result = guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(need_comm(comm));
    ANYCCL_CHECK(need(work, "work"));
    *work = nullptr;
    ANYCCL_TRY(call, read_call(asked, comm));
    return {};
  });
  if (result != anycclSuccess) return result;
  Comm::Handover handover;
  handover.time = std::chrono::milliseconds(wait_ms);
  result = run_or_add(call, comm, asked->stream, &handover);
  if (handover.rest == nullptr) return result;
  return guarded(comm, [&]() -> Status {
    ANYCCL_TRY(*work, work_of(comm, std::move(handover.rest), call));
    return Status(Code::in_progress, "the call goes on as *work");
  });
}

anycclResult_t anycclIssue(const anycclCall_t* asked, anycclComm_t comm, anycclWork_t* work) {
  return guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(need_comm(comm));
    ANYCCL_CHECK(need(work, "work"));
    *work = nullptr;
    ANYCCL_TRY(const Call call, read_call(asked, comm));
    std::shared_ptr<Operation> operation;
    if (may_be_on_device(*comm, asked->stream)) {
      ANYCCL_TRY(operation, issue_on_device(call, comm, asked->stream));
    }
    const bool is_on_device = operation != nullptr;
    if (asked->stream != nullptr && !is_on_device) ANYCCL_CHECK(need_stream(asked->stream));
    if (!is_on_device) {
      ANYCCL_TRY(operation, asked->stream == nullptr ? comm->comm->issue(call)
                                                     : issue_in_stream(call, comm, asked->stream));
    }
    if (asked->stream == nullptr || is_on_device) {
      ANYCCL_TRY(*work, work_of(comm, std::move(operation), call));
    } else {
      *work = new anycclWork{comm->comm, std::move(operation), call.collective};
    }
    return {};
  });
}

anycclResult_t anycclIssueAll(const anycclCall_t* asked, size_t count, anycclComm_t comm,
                              anycclWork_t* works) {
  return guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(need_comm(comm));
    if (count == 0) return {};
    ANYCCL_CHECK(need(asked, "calls"));
    ANYCCL_CHECK(need(works, "works"));
    std::fill_n(works, count, nullptr);
    std::vector<Call> calls;
    std::vector<anycclStream_t> streams;
    for (std::size_t i = 0; i < count; ++i) {
      ANYCCL_TRY(calls.emplace_back(), read_call(asked + i, comm));
      if (asked[i].stream != nullptr && asked[i].stream->device == nullptr)
        return error(Code::invalid_usage, "call {} has a stream: use anycclGroupStart", i);
      streams.push_back(asked[i].stream);
    }
    ANYCCL_TRY(Comm::IssuedCalls issued, issue_all(calls, streams, comm));
    Status first;
    for (std::size_t i = 0; i < count; ++i) {
      const auto work = issued[i].ok() ? work_of(comm, *std::move(issued[i]), calls[i])
                                       : Result<anycclWork_t>(issued[i].status());
      if (work.ok())
        works[i] = *work;
      else if (first.ok())
        first = work.status();
    }
    return first;
  });
}
