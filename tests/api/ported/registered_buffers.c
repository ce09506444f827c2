/* Buffers that the library allocates, and that the program registers with each communicator before
 * it uses them again and again. Written for NCCL and CUDA; nothing here knows of any other library.
 */
#include <stdio.h>
#include <stdlib.h>

#include "checks.h"
#include "cuda_runtime.h"
#include "nccl.h"

#define DEVICES 4
#define COUNT (DEVICES * 30000)
#define STEPS 5

int main(void) {
  ncclComm_t comms[DEVICES];
  float *gradients[DEVICES], *shards[DEVICES];
  void *gradient_handles[DEVICES], *shard_handles[DEVICES];
  cudaStream_t streams[DEVICES];
  float* host = malloc(COUNT * sizeof(float));
  int d, i, step;

  if (host == NULL) return EXIT_FAILURE;
  NCCLCHECK(ncclCommInitAll(comms, DEVICES, NULL));
  for (d = 0; d < DEVICES; ++d) {
    CUDACHECK(cudaSetDevice(d));
    NCCLCHECK(ncclMemAlloc((void**)&gradients[d], COUNT * sizeof(float)));
    NCCLCHECK(ncclMemAlloc((void**)&shards[d], COUNT / DEVICES * sizeof(float)));
    NCCLCHECK(
        ncclCommRegister(comms[d], gradients[d], COUNT * sizeof(float), &gradient_handles[d]));
    NCCLCHECK(
        ncclCommRegister(comms[d], shards[d], COUNT / DEVICES * sizeof(float), &shard_handles[d]));
    CUDACHECK(cudaStreamCreate(&streams[d]));
  }

  for (step = 0; step < STEPS; ++step) {
    for (d = 0; d < DEVICES; ++d) {
      for (i = 0; i < COUNT; ++i) host[i] = (float)(d * (step + 1) + i % 50);
      CUDACHECK(cudaMemcpy(gradients[d], host, COUNT * sizeof(float), cudaMemcpyHostToDevice));
    }
    NCCLCHECK(ncclGroupStart());
    for (d = 0; d < DEVICES; ++d)
      NCCLCHECK(ncclReduceScatter(gradients[d], shards[d], COUNT / DEVICES, ncclFloat, ncclSum,
                                  comms[d], streams[d]));
    NCCLCHECK(ncclGroupEnd());
    NCCLCHECK(ncclGroupStart());
    for (d = 0; d < DEVICES; ++d)
      NCCLCHECK(
          ncclAllGather(shards[d], gradients[d], COUNT / DEVICES, ncclFloat, comms[d], streams[d]));
    NCCLCHECK(ncclGroupEnd());
    NCCLCHECK(ncclGroupStart());
    for (d = 0; d < DEVICES; ++d) /* in place, of equal vectors */
      NCCLCHECK(ncclAllReduce(gradients[d], gradients[d], COUNT, ncclFloat, ncclAvg, comms[d],
                              streams[d]));
    NCCLCHECK(ncclGroupEnd());
    for (d = 0; d < DEVICES; ++d) {
      CUDACHECK(cudaStreamSynchronize(streams[d]));
      CUDACHECK(cudaMemcpy(host, gradients[d], COUNT * sizeof(float), cudaMemcpyDeviceToHost));
      for (i = 0; i < COUNT; ++i) {
        if (host[i] == (float)((0 + 1 + 2 + 3) * (step + 1) + DEVICES * (i % 50))) continue;
        printf("step %d, device %d, element %d: %g\n", step, d, i, host[i]);
        return EXIT_FAILURE;
      }
    }
  }

  for (d = 0; d < DEVICES; ++d) {
    NCCLCHECK(ncclCommDeregister(comms[d], gradient_handles[d]));
    NCCLCHECK(ncclCommDeregister(comms[d], shard_handles[d]));
    CUDACHECK(cudaStreamDestroy(streams[d]));
    NCCLCHECK(ncclCommDestroy(comms[d]));
    NCCLCHECK(ncclMemFree(gradients[d]));
    NCCLCHECK(ncclMemFree(shards[d]));
  }
  free(host);
  printf("Success\n");
  return EXIT_SUCCESS;
}
