/* What programs for NCCL need of CUDA, on a machine without devices: memory is malloc's, and all
 * streams are NULL, as all work is done when its call returns. */
#ifndef HOST_CUDA_RUNTIME_H
#define HOST_CUDA_RUNTIME_H

#include <stdlib.h>
#include <string.h>

#include "nccl.h"

typedef int cudaError_t;
typedef int cudaEvent_t;    /* Any two are 1 ms apart. */
typedef int cudaMemcpyKind; /* Host and device are one. */
#define cudaSuccess 0
#define cudaErrorNotReady 600
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
#define cudaMemcpyAsync(to, from, bytes, kind, stream) \
  ((void)(stream), memcpy(to, from, bytes), cudaSuccess)

#define cudaStreamCreate(stream) (*(stream) = NULL, cudaSuccess)
#define cudaStreamCreateWithFlags(stream, flags) ((void)(flags), *(stream) = NULL, cudaSuccess)
#define cudaStreamSynchronize(stream) ((void)(stream), cudaSuccess)
#define cudaStreamQuery(stream) ((void)(stream), cudaSuccess)
#define cudaStreamDestroy(stream) ((void)(stream), cudaSuccess)
#define cudaLaunchHostFunc(stream, fn, data) ((void)(stream), (fn)(data), cudaSuccess)
#define cudaEventCreate(event) (*(event) = 0, cudaSuccess)
#define cudaEventRecord(event, stream) ((void)(event), (void)(stream), cudaSuccess)
#define cudaEventSynchronize(event) ((void)(event), cudaSuccess)
#define cudaEventElapsedTime(ms, start, end) ((void)(start), (void)(end), *(ms) = 1, cudaSuccess)
#define cudaEventDestroy(event) ((void)(event), cudaSuccess)

#endif
