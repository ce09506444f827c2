/* One process, one thread, many devices: the first program of NCCL's documentation, in our words.
 * Written for NCCL and CUDA; nothing here knows of any other library. */
#include <stdio.h>
#include <stdlib.h>

#include "checks.h"
#include "cuda_runtime.h"
#include "nccl.h"

#define DEVICES 4

int main(void) {
  const size_t size = 32 * 1024 * 1024;
  const int devices[DEVICES] = {0, 1, 2, 3};
  ncclComm_t comms[DEVICES];
  float *sendbuff[DEVICES], *recvbuff[DEVICES];
  cudaStream_t streams[DEVICES];
  float* host = malloc(size * sizeof(float));
  int d;
  size_t i;

  if (host == NULL) return EXIT_FAILURE;
  for (d = 0; d < DEVICES; ++d) {
    CUDACHECK(cudaSetDevice(d));
    CUDACHECK(cudaMalloc((void**)&sendbuff[d], size * sizeof(float)));
    CUDACHECK(cudaMalloc((void**)&recvbuff[d], size * sizeof(float)));
    for (i = 0; i < size; ++i) host[i] = (float)(d + (int)(i % 1000));
    CUDACHECK(cudaMemcpy(sendbuff[d], host, size * sizeof(float), cudaMemcpyHostToDevice));
    CUDACHECK(cudaMemset(recvbuff[d], 0, size * sizeof(float)));
    CUDACHECK(cudaStreamCreate(&streams[d]));
  }
  NCCLCHECK(ncclCommInitAll(comms, DEVICES, devices));

  /* One thread calls for all devices, so the calls are a group. */
  NCCLCHECK(ncclGroupStart());
  for (d = 0; d < DEVICES; ++d)
    NCCLCHECK(
        ncclAllReduce(sendbuff[d], recvbuff[d], size, ncclFloat, ncclSum, comms[d], streams[d]));
  NCCLCHECK(ncclGroupEnd());
  for (d = 0; d < DEVICES; ++d) {
    CUDACHECK(cudaSetDevice(d));
    CUDACHECK(cudaStreamSynchronize(streams[d]));
  }

  for (d = 0; d < DEVICES; ++d) {
    CUDACHECK(cudaMemcpy(host, recvbuff[d], size * sizeof(float), cudaMemcpyDeviceToHost));
    for (i = 0; i < size; ++i) {
      if (host[i] != (float)(0 + 1 + 2 + 3 + DEVICES * (int)(i % 1000))) {
        printf("device %d, element %zu: %g\n", d, i, host[i]);
        return EXIT_FAILURE;
      }
    }
  }

  for (d = 0; d < DEVICES; ++d) {
    CUDACHECK(cudaSetDevice(d));
    CUDACHECK(cudaFree(sendbuff[d]));
    CUDACHECK(cudaFree(recvbuff[d]));
    CUDACHECK(cudaStreamDestroy(streams[d]));
    NCCLCHECK(ncclCommDestroy(comms[d]));
  }
  free(host);
  printf("%d devices: the sums of %zu elements are right\n", DEVICES, size);
  return 0;
}
