#pragma once
// Streams of CUDA in calls.

#include "anyccl/anyccl.h"
#include "handles.hpp"
#include "nccl.h"
#include "results.hpp"

namespace anyccl::nccl {

/// The stream of one call, as anyccl has it: a wrapped one, if the communicator has a device, also
/// for its default stream; else none. The call, or the group that it is in, needs it no longer than
/// this lives.
class CallStream {
 public:
  CallStream(ncclComm_t comm, cudaStream_t native) : status_(open(comm, native)) {}
  ~CallStream() { anycclStreamDestroy(stream_); }
  CallStream(const CallStream&) = delete;
  CallStream& operator=(const CallStream&) = delete;

  /// Errors: invalid argument for a stream where there is no device; those of the communicator.
  ncclResult_t status() const { return status_; }
  anycclStream_t get() const { return stream_; }

 private:
  ncclResult_t open(ncclComm_t comm, cudaStream_t native);

  anycclStream_t stream_ = nullptr;
  const ncclResult_t status_;
};

/// Calls `call` with communicator and stream as anyccl has them.
template <typename Call>
ncclResult_t in_stream(ncclComm_t comm, cudaStream_t native, Call call) {
  const CallStream stream(comm, native);
  if (stream.status() != ncclSuccess) return stream.status();
  return passed_on(call(to_anyccl(comm), stream.get()));
}

}  // namespace anyccl::nccl
