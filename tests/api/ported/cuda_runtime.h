/* What the ported programs need of CUDA, on a machine whose only device is its host. */
#ifndef PORTED_CUDA_RUNTIME_H
#define PORTED_CUDA_RUNTIME_H

#include <stdlib.h>
#include <string.h>

#include "anyccl.h"

typedef int cudaError_t;
typedef anycclStream_t cudaStream_t;
#define cudaSuccess 0
#define cudaMemcpyHostToDevice 0
#define cudaMemcpyDeviceToHost 1

#define cudaGetErrorString(error) "a call of the CUDA shim failed"
#define cudaSetDevice(device) ((void)(device), cudaSuccess)
#define cudaMalloc(pointer, bytes) ((*(pointer) = malloc(bytes)) == NULL)
#define cudaFree(pointer) (free(pointer), cudaSuccess)
#define cudaMemset(pointer, byte, bytes) (memset(pointer, byte, bytes), cudaSuccess)
#define cudaMemcpy(to, from, bytes, kind) (memcpy(to, from, bytes), cudaSuccess)
#define cudaStreamCreate(stream) ((int)anycclStreamCreate(stream))
#define cudaStreamSynchronize(stream) ((int)anycclStreamSynchronize(stream))
#define cudaStreamDestroy(stream) ((int)anycclStreamDestroy(stream))

#endif
