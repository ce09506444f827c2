// Collectives.

#include "second_name.hpp"
#include "streams.hpp"
#include "types.hpp"

namespace anyccl::nccl {
namespace {

/// Calls `call` as in_stream() does, if the type and the operator are NCCL's.
template <typename Call>
ncclResult_t reduce(ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream,
                    Call call) {
  if (const ncclResult_t found = check(type, comm); found != ncclSuccess) return found;
  if (const ncclResult_t found = check(op, comm); found != ncclSuccess) return found;
  return in_stream(comm, stream, call);
}

/// As reduce(), for calls without an operator.
template <typename Call>
ncclResult_t move(ncclDataType_t type, ncclComm_t comm, cudaStream_t stream, Call call) {
  return reduce(type, ncclSum, comm, stream, call);
}

}  // namespace
}  // namespace anyccl::nccl

using namespace anyccl::nccl;

ncclResult_t ncclReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  return reduce(datatype, op, comm, stream, [&](anycclComm_t c, anycclStream_t s) {
    return anycclReduce(sendbuff, recvbuff, count, to_anyccl(datatype), to_anyccl(op), root, c, s);
  });
}
ANYCCL_SECOND_NAME(ncclReduce);

ncclResult_t ncclBcast(void* buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
                       cudaStream_t stream) {
  return move(datatype, comm, stream, [&](anycclComm_t c, anycclStream_t s) {
    return anycclBcast(buff, count, to_anyccl(datatype), root, c, s);
  });
}
ANYCCL_SECOND_NAME(ncclBcast);

ncclResult_t ncclBroadcast(const void* sendbuff, void* recvbuff, size_t count,
                           ncclDataType_t datatype, int root, ncclComm_t comm,
                           cudaStream_t stream) {
  return move(datatype, comm, stream, [&](anycclComm_t c, anycclStream_t s) {
    return anycclBroadcast(sendbuff, recvbuff, count, to_anyccl(datatype), root, c, s);
  });
}
ANYCCL_SECOND_NAME(ncclBroadcast);

ncclResult_t ncclAllReduce(const void* sendbuff, void* recvbuff, size_t count,
                           ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t stream) {
  return reduce(datatype, op, comm, stream, [&](anycclComm_t c, anycclStream_t s) {
    return anycclAllReduce(sendbuff, recvbuff, count, to_anyccl(datatype), to_anyccl(op), c, s);
  });
}
ANYCCL_SECOND_NAME(ncclAllReduce);

ncclResult_t ncclReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount,
                               ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                               cudaStream_t stream) {
  return reduce(datatype, op, comm, stream, [&](anycclComm_t c, anycclStream_t s) {
    return anycclReduceScatter(sendbuff, recvbuff, recvcount, to_anyccl(datatype), to_anyccl(op), c,
                               s);
  });
}
ANYCCL_SECOND_NAME(ncclReduceScatter);

ncclResult_t ncclAllGather(const void* sendbuff, void* recvbuff, size_t sendcount,
                           ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream) {
  return move(datatype, comm, stream, [&](anycclComm_t c, anycclStream_t s) {
    return anycclAllGather(sendbuff, recvbuff, sendcount, to_anyccl(datatype), c, s);
  });
}
ANYCCL_SECOND_NAME(ncclAllGather);

ncclResult_t ncclAlltoAll(const void* sendbuff, void* recvbuff, size_t count,
                          ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream) {
  return move(datatype, comm, stream, [&](anycclComm_t c, anycclStream_t s) {
    return anycclAllToAll(sendbuff, recvbuff, count, to_anyccl(datatype), c, s);
  });
}
ANYCCL_SECOND_NAME(ncclAlltoAll);

ncclResult_t ncclGather(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                        int root, ncclComm_t comm, cudaStream_t stream) {
  return move(datatype, comm, stream, [&](anycclComm_t c, anycclStream_t s) {
    return anycclGather(sendbuff, recvbuff, count, to_anyccl(datatype), root, c, s);
  });
}
ANYCCL_SECOND_NAME(ncclGather);

ncclResult_t ncclScatter(const void* sendbuff, void* recvbuff, size_t count,
                         ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream) {
  return move(datatype, comm, stream, [&](anycclComm_t c, anycclStream_t s) {
    return anycclScatter(sendbuff, recvbuff, count, to_anyccl(datatype), root, c, s);
  });
}
ANYCCL_SECOND_NAME(ncclScatter);
