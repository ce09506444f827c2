// The C interface: messages that have come and were not received yet.

#include "base/error.hpp"
#include "c/device/device_calls.hpp"
#include "framework/communicator/probing.hpp"

namespace anyccl {
namespace {

Status check_probe(anycclComm_t comm, int tag, const anycclMessage_t* message) {
  ANYCCL_CHECK(need_comm(comm));
  ANYCCL_CHECK(need(message, "message"));
  return check_tag(tag);
}

void write_facts(const MessageFacts& found, anycclMessage_t* message) {
  *message = {index(found.source), static_cast<int>(found.tag),
              static_cast<anycclDataType_t>(found.dtype), found.count};
}

anycclResult_t probe_until(int source, int tag, anycclComm_t comm, Deadline deadline,
                           anycclMessage_t* message) {
  return guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(check_probe(comm, tag, message));
    if (in_group()) return error(Code::invalid_usage, "anycclProbe waits: it cannot be in a group");
    MessageFacts found;
    ANYCCL_CHECK(
        Probing(*comm->comm).wait(Rank{source}, static_cast<std::uint32_t>(tag), deadline, found));
    write_facts(found, message);
    return {};
  });
}

}  // namespace
}  // namespace anyccl

using namespace anyccl;

anycclResult_t anycclProbe(int source, int tag, anycclComm_t comm, anycclMessage_t* message) {
  return probe_until(source, tag, comm, {}, message);
}

anycclResult_t anycclProbeFor(int source, int tag, anycclComm_t comm, unsigned int timeout_ms,
                              anycclMessage_t* message) {
  return probe_until(source, tag, comm, Deadline::in(std::chrono::milliseconds(timeout_ms)),
                     message);
}

anycclResult_t anycclIprobe(int source, int tag, anycclComm_t comm, int* flag,
                            anycclMessage_t* message) {
  return guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(check_probe(comm, tag, message));
    ANYCCL_CHECK(need(flag, "flag"));
    *flag = 0;
    MessageFacts found;
    ANYCCL_TRY(const bool is_there,
               Probing(*comm->comm).look(Rank{source}, static_cast<std::uint32_t>(tag), found));
    if (!is_there) return {};
    *flag = 1;
    write_facts(found, message);
    return {};
  });
}

anycclResult_t anycclRecvFound(void* recvbuff, const anycclMessage_t* message, anycclComm_t comm,
                               anycclWork_t* work) {
  return guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(need(work, "work"));
    *work = nullptr;
    ANYCCL_CHECK(need(message, "message"));
    ANYCCL_CHECK(check_probe(comm, message->tag, message));
    ANYCCL_CHECK(need_no_group("anycclRecvFound"));
    ANYCCL_CHECK(check_wait({}));
    ANYCCL_CHECK(need_host_memory(comm, {recvbuff}));
    const MessageFacts found{Rank{message->source}, static_cast<std::uint32_t>(message->tag),
                             static_cast<DType>(as_byte(message->datatype)), message->count};
    ANYCCL_TRY(std::shared_ptr<Operation> receive,
               Probing(*comm->comm).receive(found, static_cast<std::byte*>(recvbuff)));
    if (receive == nullptr) return {};
    if (!receive->done()) comm->background_progress = true;
    ANYCCL_TRY(*work, make_work(comm->comm, std::move(receive), Collective::recv));
    return {};
  });
}
