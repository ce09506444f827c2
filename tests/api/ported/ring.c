/* A ring of sends and receives among communicators that are created without waiting, and a sum with
 * a factor of each rank. Written for NCCL and CUDA; nothing here knows of any other library. */
#include <stdio.h>
#include <stdlib.h>

#include "checks.h"
#include "cuda_runtime.h"
#include "nccl.h"

#define RANKS 4
#define COUNT 100000

/* Until creating, finalizing or a group is done. */
static void wait_for(ncclComm_t comm) {
  ncclResult_t state;
  do {
    NCCLCHECK(ncclCommGetAsyncError(comm, &state));
  } while (state == ncclInProgress);
  NCCLCHECK(state);
}

static void expect(const float* device, float first, float step) {
  float host[COUNT];
  int i;
  CUDACHECK(cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost));
  for (i = 0; i < COUNT; ++i) {
    if (host[i] == first + step * (float)(i % 100)) continue;
    printf("element %d is %g\n", i, host[i]);
    exit(EXIT_FAILURE);
  }
}

int main(void) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  ncclComm_t comms[RANKS] = {NCCL_COMM_NULL};
  ncclRedOp_t weighted[RANKS];
  ncclUniqueId id;
  cudaStream_t streams[RANKS];
  float *mine[RANKS], *theirs[RANKS];
  float host[COUNT];
  int r, i, count, rank, device, version;

  NCCLCHECK(ncclGetVersion(&version));
  if (version != NCCL_VERSION_CODE) return EXIT_FAILURE;
#if NCCL_VERSION_CODE < NCCL_VERSION(0, 1, 0)
#error "versions cannot be compared"
#endif
  config.blocking = 0;
  config.minCTAs = 1;
  config.commName = "ring";
  NCCLCHECK(ncclGetUniqueId(&id));
  NCCLCHECK(ncclGroupStart());
  for (r = 0; r < RANKS; ++r) {
    const ncclResult_t begun = ncclCommInitRankConfig(&comms[r], RANKS, id, r, &config);
    if (begun != ncclSuccess && begun != ncclInProgress) NCCLCHECK(begun);
  }
  {
    const ncclResult_t ended = ncclGroupEnd();
    if (ended != ncclSuccess && ended != ncclInProgress) NCCLCHECK(ended);
  }
  for (r = 0; r < RANKS; ++r) wait_for(comms[r]);

  for (r = 0; r < RANKS; ++r) {
    NCCLCHECK(ncclCommCount(comms[r], &count));
    NCCLCHECK(ncclCommUserRank(comms[r], &rank));
    NCCLCHECK(ncclCommCuDevice(comms[r], &device));
    if (count != RANKS || rank != r) return EXIT_FAILURE;
    CUDACHECK(cudaSetDevice(device));
    CUDACHECK(cudaMalloc((void**)&mine[r], sizeof host));
    CUDACHECK(cudaMalloc((void**)&theirs[r], sizeof host));
    for (i = 0; i < COUNT; ++i) host[i] = (float)(1000 * r + i % 100);
    CUDACHECK(cudaMemcpy(mine[r], host, sizeof host, cudaMemcpyHostToDevice));
    CUDACHECK(cudaStreamCreate(&streams[r]));
  }

  NCCLCHECK(ncclGroupStart());
  for (r = 0; r < RANKS; ++r) {
    NCCLCHECK(ncclSend(mine[r], COUNT, ncclFloat, (r + 1) % RANKS, comms[r], streams[r]));
    NCCLCHECK(ncclRecv(theirs[r], COUNT, ncclFloat, (r + RANKS - 1) % RANKS, comms[r], streams[r]));
  }
  NCCLCHECK(ncclGroupEnd());
  for (r = 0; r < RANKS; ++r) {
    CUDACHECK(cudaStreamSynchronize(streams[r]));
    expect(theirs[r], (float)(1000 * ((r + RANKS - 1) % RANKS)), 1.0f);
  }

  for (r = 0; r < RANKS; ++r) {
    float factor = (float)(r + 1);
    NCCLCHECK(ncclRedOpCreatePreMulSum(&weighted[r], &factor, ncclFloat, ncclScalarHostImmediate,
                                       comms[r]));
  }
  NCCLCHECK(ncclGroupStart());
  for (r = 0; r < RANKS; ++r)
    NCCLCHECK(
        ncclAllReduce(mine[r], theirs[r], COUNT, ncclFloat, weighted[r], comms[r], streams[r]));
  NCCLCHECK(ncclGroupEnd());
  for (r = 0; r < RANKS; ++r) {
    CUDACHECK(cudaStreamSynchronize(streams[r]));
    expect(theirs[r], 1000.0f * (0 * 1 + 1 * 2 + 2 * 3 + 3 * 4), 1 + 2 + 3 + 4);
    NCCLCHECK(ncclRedOpDestroy(weighted[r], comms[r]));
  }

  for (r = 0; r < RANKS; ++r) {
    const ncclResult_t begun = ncclCommFinalize(comms[r]);
    if (begun != ncclSuccess && begun != ncclInProgress) NCCLCHECK(begun);
  }
  for (r = 0; r < RANKS; ++r) {
    wait_for(comms[r]);
    NCCLCHECK(ncclCommDestroy(comms[r]));
    CUDACHECK(cudaStreamDestroy(streams[r]));
    CUDACHECK(cudaFree(mine[r]));
    CUDACHECK(cudaFree(theirs[r]));
  }
  printf("Success\n");
  return EXIT_SUCCESS;
}
