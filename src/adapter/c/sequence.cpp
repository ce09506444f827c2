// The C interface: calls that are one place in the order of a communicator's calls.

#include "adapter/c/handle.hpp"
#include "base/error.hpp"
#include "framework/communicator/call_sequence.hpp"

using namespace anyccl;

anycclResult_t anycclSequenceBegin(anycclComm_t comm, unsigned int wait_ms) {
  return guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(need_comm(comm));
    ANYCCL_CHECK(need_no_group("anycclSequenceBegin"));
    ANYCCL_CHECK(check_wait({.comm = comm->comm.get()}));
    ANYCCL_TRY(auto sequence,
               CallSequence::begin(*comm->comm, Deadline::in(std::chrono::milliseconds(wait_ms))));
    if (sequence == nullptr)
      return error(Code::invalid_usage, "this thread is in a sequence of comm already");
    const std::lock_guard lock(comm->mutex);
    comm->sequence = std::move(sequence);
    return {};
  });
}

anycclResult_t anycclSequenceTake(anycclComm_t comm) {
  return guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(need_comm(comm));
    const std::lock_guard lock(comm->mutex);
    if (comm->sequence == nullptr) return error(Code::invalid_usage, "comm is in no sequence");
    comm->sequence->take();
    return {};
  });
}

anycclResult_t anycclSequenceEnd(anycclComm_t comm) {
  return guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(need_comm(comm));
    std::unique_lock lock(comm->mutex);
    const std::shared_ptr<CallSequence> sequence = std::move(comm->sequence);
    lock.unlock();
    if (sequence == nullptr) return error(Code::invalid_usage, "comm is in no sequence");
    sequence->end();
    return {};
  });
}
