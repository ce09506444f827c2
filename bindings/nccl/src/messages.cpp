// Messages.

#include "second_name.hpp"
#include "streams.hpp"
#include "types.hpp"

namespace anyccl::nccl {
namespace {

/// The number of a peer for anyccl, where -1 is any rank, and here none.
int peer_or_none(int peer) {
  return peer == ANYCCL_ANY_SOURCE ? peer - 1 : peer;
}

}  // namespace
}  // namespace anyccl::nccl

using namespace anyccl::nccl;

ncclResult_t ncclSend(const void* sendbuff, size_t count, ncclDataType_t datatype, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  if (const ncclResult_t found = check(datatype, comm); found != ncclSuccess) return found;
  return in_stream(comm, stream, [&](anycclComm_t c, anycclStream_t s) {
    return anycclSend(sendbuff, count, to_anyccl(datatype), peer, c, s);
  });
}
ANYCCL_SECOND_NAME(ncclSend);

ncclResult_t ncclRecv(void* recvbuff, size_t count, ncclDataType_t datatype, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  if (const ncclResult_t found = check(datatype, comm); found != ncclSuccess) return found;
  return in_stream(comm, stream, [&](anycclComm_t c, anycclStream_t s) {
    return anycclRecv(recvbuff, count, to_anyccl(datatype), peer_or_none(peer), c, s);
  });
}
ANYCCL_SECOND_NAME(ncclRecv);
