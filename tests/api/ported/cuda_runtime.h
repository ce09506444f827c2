/* What the ported programs need of CUDA, on a machine whose only device is its host: memory is
 * malloc's, streams and events are anyccl's, and there are as many devices as a program asks for.
 */
#ifndef PORTED_CUDA_RUNTIME_H
#define PORTED_CUDA_RUNTIME_H

#include <stdlib.h>
#include <string.h>

#include "anyccl.h"

typedef int cudaError_t;
typedef anycclStream_t cudaStream_t;
typedef anycclEvent_t cudaEvent_t;
typedef int cudaMemcpyKind; /* Host and device are one. */
#define cudaSuccess 0
#define cudaErrorNotReady ((int)anycclInProgress)
#define cudaMemcpyHostToDevice 0
#define cudaMemcpyDeviceToHost 1
#define cudaMemcpyDeviceToDevice 2
#define cudaStreamNonBlocking 1

#define cudaGetErrorString(error) "a call of the CUDA shim failed"
#define cudaGetDeviceCount(count) (*(count) = 4, cudaSuccess)
#define cudaSetDevice(device) ((void)(device), cudaSuccess)
#define cudaMalloc(pointer, bytes) ((*(pointer) = malloc(bytes)) == NULL)
#define cudaFree(pointer) (free(pointer), cudaSuccess)
#define cudaMemset(pointer, byte, bytes) (memset(pointer, byte, bytes), cudaSuccess)
#define cudaMemcpy(to, from, bytes, kind) (memcpy(to, from, bytes), cudaSuccess)

#define cudaStreamCreate(stream) ((int)anycclStreamCreate(stream))
#define cudaStreamCreateWithFlags(stream, flags) ((void)(flags), (int)anycclStreamCreate(stream))
#define cudaStreamSynchronize(stream) ((int)anycclStreamSynchronize(stream))
#define cudaStreamQuery(stream) ((int)anycclStreamQuery(stream))
#define cudaStreamWaitEvent(stream, event, flags) \
  ((void)(flags), (int)anycclStreamWaitEvent(stream, event))
#define cudaStreamDestroy(stream) ((int)anycclStreamDestroy(stream))
#define cudaLaunchHostFunc(stream, fn, data) ((int)anycclLaunchHostFunc(stream, fn, data))
#define cudaEventCreate(event) ((int)anycclEventCreate(event))
#define cudaEventRecord(event, stream) ((int)anycclEventRecord(event, stream))
#define cudaEventSynchronize(event) ((int)anycclEventSynchronize(event))
#define cudaEventElapsedTime(ms, start, end) ((int)anycclEventElapsedTime(ms, start, end))
#define cudaEventDestroy(event) ((int)anycclEventDestroy(event))

/* A copy is work of a stream: a function with its arguments. */
struct portedCopy {
  void* to;
  const void* from;
  size_t bytes;
};
static inline void portedRunCopy(void* data) {
  struct portedCopy* copy = (struct portedCopy*)data;
  memcpy(copy->to, copy->from, copy->bytes);
  free(copy);
}
static inline cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes,
                                          cudaMemcpyKind kind, cudaStream_t stream) {
  struct portedCopy* copy = (struct portedCopy*)malloc(sizeof *copy);
  cudaError_t error;
  (void)kind;
  if (copy == NULL) return 1;
  copy->to = to;
  copy->from = from;
  copy->bytes = bytes;
  error = cudaLaunchHostFunc(stream, portedRunCopy, copy);
  if (error != cudaSuccess) free(copy);
  return error;
}

#endif
