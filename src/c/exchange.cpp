// The C interface: calls that are several messages.

#include "c/exchange.hpp"

#include <vector>

#include "base/error.hpp"
#include "c/device/device_calls.hpp"

namespace anyccl {
namespace {

Status add(const BlockMessage& message, anycclComm_t comm, anycclStream_t stream) {
  if (message.peer == ANYCCL_NO_RANK || message.count == 0) return {};
  const bool sends = message.way == Collective::send;
  if (message.at == nullptr)
    return error(Code::invalid_argument, "{} is NULL, but {} elements go {} rank {}",
                 sends ? "sendbuff" : "recvbuff", message.count, sends ? "to" : "from",
                 message.peer);
  Call call;
  call.collective = message.way;
  call.dtype = static_cast<DType>(as_byte(message.datatype));
  call.root = Rank{message.peer};
  call.tag = kOwnTag | message.tag;
  call.count = message.count;
  // Those of a group are checked one by one at its end, when the others have been sent.
  if (bytes_of(call.dtype) == 0)
    return error(Code::invalid_argument, "datatype {} does not exist",
                 static_cast<int>(message.datatype));
  if (call.count > (std::size_t{1} << 62) / bytes_of(call.dtype))
    return error(Code::invalid_argument, "count {} of {} is negative or overflows", call.count,
                 name_of(call.dtype));
  const auto* const bytes = static_cast<const std::byte*>(message.at);
  if (sends)
    call.input = bytes;
  else
    call.output = const_cast<std::byte*>(bytes);  // it was not const
  if (may_be_on_device(*comm, stream)) {
    ANYCCL_TRY(const bool was_added, run_on_device(call, comm, stream, nullptr));
    if (was_added) return {};
  }
  if (stream == nullptr) ANYCCL_CHECK(check_wait({.comm = comm->comm.get(), .call = &call}));
  add_to_group(comm, call, stream);
  return {};
}

}  // namespace

anycclResult_t exchange(std::span<const BlockMessage> messages, anycclComm_t comm,
                        anycclStream_t stream) {
  anycclGroupStart();
  const anycclResult_t added = guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(need_comm(comm));
    if (stream != nullptr && stream->device == nullptr) ANYCCL_CHECK(need_stream(stream));
    for (const BlockMessage& message : messages) ANYCCL_CHECK(add(message, comm, stream));
    return {};
  });
  const anycclResult_t done = anycclGroupEnd();
  return added != anycclSuccess ? added : done;
}

}  // namespace anyccl

using namespace anyccl;

anycclResult_t anycclAllToAllw(const void* sendbuff, const size_t sendcounts[],
                               const size_t sdispls[], const anycclDataType_t sendtypes[],
                               void* recvbuff, const size_t recvcounts[], const size_t rdispls[],
                               const anycclDataType_t recvtypes[], anycclComm_t comm,
                               anycclStream_t stream) {
  std::vector<BlockMessage> messages;
  const auto add_all = [&](Collective way, const void* buffer, const size_t* counts,
                           const size_t* displs, const anycclDataType_t* types) -> Status {
    const bool sends = way == Collective::send;
    ANYCCL_CHECK(need(counts, sends ? "sendcounts" : "recvcounts"));
    ANYCCL_CHECK(need(displs, sends ? "sdispls" : "rdispls"));
    ANYCCL_CHECK(need(types, sends ? "sendtypes" : "recvtypes"));
    const auto* const bytes = static_cast<const std::byte*>(buffer);
    for (int r = 0; r < comm->comm->size(); ++r)
      messages.push_back(
          {way, r, 0, bytes == nullptr ? bytes : bytes + displs[r], counts[r], types[r]});
    return {};
  };
  const anycclResult_t ready = guarded(comm, [&]() -> Status {
    ANYCCL_CHECK(need_comm(comm));
    ANYCCL_CHECK(add_all(Collective::send, sendbuff, sendcounts, sdispls, sendtypes));
    return add_all(Collective::recv, recvbuff, recvcounts, rdispls, recvtypes);
  });
  return ready != anycclSuccess ? ready : exchange(messages, comm, stream);
}
