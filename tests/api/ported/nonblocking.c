/* Communicators that never block: creating, splitting, groups and finalizing may all be in
 * progress, and the program asks until they are not. One that never completes is aborted. Written
 * for NCCL and CUDA; nothing here knows of any other library. */
#include <stdio.h>
#include <stdlib.h>

#include "checks.h"
#include "cuda_runtime.h"
#include "nccl.h"

#define RANKS 4
#define COUNT 20000

/* A call that may go on in the background. */
#define BEGIN(call)                                                        \
  do {                                                                     \
    const ncclResult_t begun = (call);                                     \
    if (begun != ncclSuccess && begun != ncclInProgress) NCCLCHECK(begun); \
  } while (0)

static void wait_for(ncclComm_t comms[], int count) {
  int i;
  for (i = 0; i < count; ++i) {
    ncclResult_t state = ncclInProgress;
    while (state == ncclInProgress) NCCLCHECK(ncclCommGetAsyncError(comms[i], &state));
    if (state != ncclSuccess) {
      printf("rank %d: %s\n", i, ncclGetLastError(comms[i]));
      exit(EXIT_FAILURE);
    }
  }
}

static void check_sum(ncclComm_t comms[], float* buffers[], cudaStream_t streams[], int ranks) {
  float host[COUNT];
  int r, i;
  for (r = 0; r < RANKS; ++r) {
    for (i = 0; i < COUNT; ++i) host[i] = (float)(i % 10);
    CUDACHECK(cudaMemcpy(buffers[r], host, sizeof host, cudaMemcpyHostToDevice));
  }
  NCCLCHECK(ncclGroupStart());
  for (r = 0; r < RANKS; ++r)
    BEGIN(ncclAllReduce(buffers[r], buffers[r], COUNT, ncclFloat, ncclSum, comms[r], streams[r]));
  BEGIN(ncclGroupEnd());
  wait_for(comms, RANKS); /* until all of the group is in the streams */
  for (r = 0; r < RANKS; ++r) {
    cudaError_t state;
    do {
      ncclResult_t error;
      NCCLCHECK(ncclCommGetAsyncError(comms[r], &error));
      if (error != ncclSuccess) {
        NCCLCHECK(ncclCommAbort(comms[r]));
        exit(EXIT_FAILURE);
      }
      state = cudaStreamQuery(streams[r]);
    } while (state == cudaErrorNotReady);
    CUDACHECK(state);
    CUDACHECK(cudaMemcpy(host, buffers[r], sizeof host, cudaMemcpyDeviceToHost));
    for (i = 0; i < COUNT; ++i) {
      if (host[i] == (float)(ranks * (i % 10))) continue;
      printf("rank %d, element %d: %g\n", r, i, host[i]);
      exit(EXIT_FAILURE);
    }
  }
}

/* The other rank never comes, so the program gives it up. */
static void abort_a_lonely_rank(ncclConfig_t* config) {
  ncclComm_t lonely;
  ncclUniqueId id;
  ncclResult_t state;
  int i;
  NCCLCHECK(ncclGetUniqueId(&id));
  BEGIN(ncclCommInitRankConfig(&lonely, 2, id, 0, config));
  for (i = 0; i < 100; ++i) {
    NCCLCHECK(ncclCommGetAsyncError(lonely, &state));
    if (state != ncclInProgress) {
      printf("a rank alone is %s\n", ncclGetErrorString(state));
      exit(EXIT_FAILURE);
    }
  }
  NCCLCHECK(ncclCommAbort(lonely));
}

int main(void) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  ncclComm_t comms[RANKS], halves[RANKS];
  ncclUniqueId id;
  float* buffers[RANKS];
  cudaStream_t streams[RANKS];
  int r;

  config.blocking = 0;
  abort_a_lonely_rank(&config);
  for (r = 0; r < RANKS; ++r) {
    CUDACHECK(cudaMalloc((void**)&buffers[r], COUNT * sizeof(float)));
    CUDACHECK(cudaStreamCreate(&streams[r]));
  }
  NCCLCHECK(ncclGetUniqueId(&id));
  NCCLCHECK(ncclGroupStart());
  for (r = 0; r < RANKS; ++r) BEGIN(ncclCommInitRankConfig(&comms[r], RANKS, id, r, &config));
  BEGIN(ncclGroupEnd());
  wait_for(comms, RANKS);
  check_sum(comms, buffers, streams, RANKS);

  NCCLCHECK(ncclGroupStart());
  for (r = 0; r < RANKS; ++r) BEGIN(ncclCommSplit(comms[r], r / 2, r, &halves[r], NULL));
  BEGIN(ncclGroupEnd());
  wait_for(comms, RANKS); /* then the new ones can be used */
  check_sum(halves, buffers, streams, 2);

  for (r = 0; r < RANKS; ++r) BEGIN(ncclCommFinalize(halves[r]));
  wait_for(halves, RANKS);
  for (r = 0; r < RANKS; ++r) {
    NCCLCHECK(ncclCommDestroy(halves[r]));
    NCCLCHECK(ncclCommAbort(comms[r])); /* as good as any end */
    CUDACHECK(cudaStreamDestroy(streams[r]));
    CUDACHECK(cudaFree(buffers[r]));
  }
  printf("Success\n");
  return EXIT_SUCCESS;
}
