/* The collectives that came with NCCL 2.28: a transpose by AlltoAll, and Scatter and Gather there
 * and back. Programs for older versions had groups of sends and receives. Written for NCCL and
 * CUDA; nothing here knows of any other library. */
#include <stdio.h>
#include <stdlib.h>

#include "checks.h"
#include "cuda_runtime.h"
#include "nccl.h"

#define DEVICES 4
#define BLOCK 10000 /* from each device to each */
#define ROOT 2

static ncclComm_t comms[DEVICES];
static cudaStream_t streams[DEVICES];
static int *send[DEVICES], *recv[DEVICES], host[DEVICES * BLOCK];

/* Block b of device d. */
static void expect(int* device_buffer, int d, int b, int value) {
  int i;
  CUDACHECK(cudaStreamSynchronize(streams[d]));
  CUDACHECK(
      cudaMemcpy(host, device_buffer + b * BLOCK, BLOCK * sizeof(int), cudaMemcpyDeviceToHost));
  for (i = 0; i < BLOCK; ++i) {
    if (host[i] == value + i) continue;
    printf("device %d, block %d, element %d: %d instead of %d\n", d, b, i, host[i], value + i);
    exit(EXIT_FAILURE);
  }
}

static int from_to(int from, int to) {
  return 1000000 * from + 100000 * to;
}

int main(void) {
  int d, b, i;
  NCCLCHECK(ncclCommInitAll(comms, DEVICES, NULL));
  for (d = 0; d < DEVICES; ++d) {
    CUDACHECK(cudaSetDevice(d));
    CUDACHECK(cudaStreamCreate(&streams[d]));
    CUDACHECK(cudaMalloc((void**)&send[d], sizeof host));
    CUDACHECK(cudaMalloc((void**)&recv[d], sizeof host));
    for (b = 0; b < DEVICES; ++b)
      for (i = 0; i < BLOCK; ++i) host[b * BLOCK + i] = from_to(d, b) + i;
    CUDACHECK(cudaMemcpy(send[d], host, sizeof host, cudaMemcpyHostToDevice));
  }

  NCCLCHECK(ncclGroupStart());
  for (d = 0; d < DEVICES; ++d)
    NCCLCHECK(ncclAlltoAll(send[d], recv[d], BLOCK, ncclInt, comms[d], streams[d]));
  NCCLCHECK(ncclGroupEnd());
  for (d = 0; d < DEVICES; ++d)
    for (b = 0; b < DEVICES; ++b) expect(recv[d], d, b, from_to(b, d));

  /* Every device gets its block of the root's, and the root gets all of them back. */
  NCCLCHECK(ncclGroupStart());
  for (d = 0; d < DEVICES; ++d)
    NCCLCHECK(ncclScatter(send[d], recv[d], BLOCK, ncclInt, ROOT, comms[d], streams[d]));
  NCCLCHECK(ncclGroupEnd());
  for (d = 0; d < DEVICES; ++d) expect(recv[d], d, 0, from_to(ROOT, d));
  CUDACHECK(cudaMemset(send[ROOT], 0, sizeof host));
  NCCLCHECK(ncclGroupStart());
  for (d = 0; d < DEVICES; ++d)
    NCCLCHECK(ncclGather(recv[d], d == ROOT ? send[d] : NULL, BLOCK, ncclInt, ROOT, comms[d],
                         streams[d]));
  NCCLCHECK(ncclGroupEnd());
  for (b = 0; b < DEVICES; ++b) expect(send[ROOT], ROOT, b, from_to(ROOT, b));

  for (d = 0; d < DEVICES; ++d) {
    CUDACHECK(cudaStreamDestroy(streams[d]));
    CUDACHECK(cudaFree(send[d]));
    CUDACHECK(cudaFree(recv[d]));
    NCCLCHECK(ncclCommDestroy(comms[d]));
  }
  printf("Success\n");
  return EXIT_SUCCESS;
}
