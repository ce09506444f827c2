/* A ring of PutSignals, a barrier of signals and an all-to-all of PutSignals, by one thread for all
 * ranks. Written for NCCL and CUDA; nothing here knows of any other library. */
#include <stdio.h>
#include <stdlib.h>

#include "checks.h"
#include "cuda_runtime.h"
#include "nccl.h"

#define RANKS 4
#define COUNT 50000 /* Elements for each rank. */
#define SIZE (RANKS * COUNT * sizeof(float))

static ncclComm_t comms[RANKS];
static ncclWindow_t send_windows[RANKS], recv_windows[RANKS];
static cudaStream_t streams[RANKS];
static float host[RANKS * COUNT];

static float* pointer(int rank, ncclWindow_t window) {
  void* user = NULL;
  NCCLCHECK(ncclWinGetUserPtr(comms[rank], window, &user));
  return (float*)user;
}

static void register_windows(void) {
  void* buffer;
  int r;
  NCCLCHECK(ncclGroupStart());
  for (r = 0; r < RANKS; ++r) {
    CUDACHECK(cudaSetDevice(r));
    CUDACHECK(cudaStreamCreate(&streams[r]));
    NCCLCHECK(ncclMemAlloc(&buffer, SIZE));
    NCCLCHECK(
        ncclCommWindowRegister(comms[r], buffer, SIZE, &send_windows[r], NCCL_WIN_COLL_SYMMETRIC));
    NCCLCHECK(ncclMemAlloc(&buffer, SIZE));
    NCCLCHECK(
        ncclCommWindowRegister(comms[r], buffer, SIZE, &recv_windows[r], NCCL_WIN_COLL_SYMMETRIC));
  }
  NCCLCHECK(ncclGroupEnd());
}

static void fill(void) {
  int r, i;
  for (r = 0; r < RANKS; ++r) {
    for (i = 0; i < RANKS * COUNT; ++i) host[i] = (float)(1000 * r + i / COUNT + i % 7);
    CUDACHECK(cudaMemcpy(pointer(r, send_windows[r]), host, SIZE, cudaMemcpyHostToDevice));
    CUDACHECK(cudaMemset(pointer(r, recv_windows[r]), 0, SIZE));
  }
}

/* Block `block` of a rank, which began as block `began` of `peer`. */
static void expect(int rank, int block, int peer, int began) {
  int i;
  CUDACHECK(cudaMemcpy(host, pointer(rank, recv_windows[rank]), SIZE, cudaMemcpyDeviceToHost));
  for (i = 0; i < COUNT; ++i) {
    const float wanted = (float)(1000 * peer + began + (began * COUNT + i) % 7);
    if (host[block * COUNT + i] == wanted) continue;
    printf("rank %d: element %d of block %d is %g\n", rank, i, block, host[block * COUNT + i]);
    exit(EXIT_FAILURE);
  }
}

static void synchronize(void) {
  int r;
  for (r = 0; r < RANKS; ++r) CUDACHECK(cudaStreamSynchronize(streams[r]));
}

/* Each rank signals to all and waits for all. */
static void barrier(void) {
  ncclWaitSignalDesc_t all[RANKS];
  int r, peer;
  for (r = 0; r < RANKS; ++r) {
    all[r].opCnt = 1;
    all[r].peer = r;
    all[r].sigIdx = 0;
    all[r].ctx = 0;
  }
  NCCLCHECK(ncclGroupStart());
  for (r = 0; r < RANKS; ++r)
    for (peer = 0; peer < RANKS; ++peer) NCCLCHECK(ncclSignal(peer, 0, 0, 0, comms[r], streams[r]));
  NCCLCHECK(ncclGroupEnd());
  for (r = 0; r < RANKS; ++r) NCCLCHECK(ncclWaitSignal(RANKS, all, comms[r], streams[r]));
}

static void ring(void) {
  int r;
  NCCLCHECK(ncclGroupStart());
  for (r = 0; r < RANKS; ++r)
    NCCLCHECK(ncclPutSignal(pointer(r, send_windows[r]), COUNT, ncclFloat, (r + 1) % RANKS,
                            recv_windows[r], 0, 0, 0, 0, comms[r], streams[r]));
  NCCLCHECK(ncclGroupEnd());
  for (r = 0; r < RANKS; ++r) {
    ncclWaitSignalDesc_t previous = {1, (r + RANKS - 1) % RANKS, 0, 0};
    NCCLCHECK(ncclWaitSignal(1, &previous, comms[r], streams[r]));
  }
  synchronize();
  for (r = 0; r < RANKS; ++r) expect(r, 0, (r + RANKS - 1) % RANKS, 0);
}

/* In one group: no rank waits for another to call. */
static void all_to_all(void) {
  ncclWaitSignalDesc_t all[RANKS];
  int r, peer;
  NCCLCHECK(ncclGroupStart());
  for (r = 0; r < RANKS; ++r) {
    for (peer = 0; peer < RANKS; ++peer) {
      NCCLCHECK(ncclPutSignal(pointer(r, send_windows[r]) + peer * COUNT, COUNT, ncclFloat, peer,
                              recv_windows[r], (size_t)r * COUNT * sizeof(float), 0, 0, 0, comms[r],
                              streams[r]));
      all[peer].opCnt = 1;
      all[peer].peer = peer;
      all[peer].sigIdx = 0;
      all[peer].ctx = 0;
    }
    NCCLCHECK(ncclWaitSignal(RANKS, all, comms[r], streams[r]));
  }
  NCCLCHECK(ncclGroupEnd());
  synchronize();
  for (r = 0; r < RANKS; ++r)
    for (peer = 0; peer < RANKS; ++peer) expect(r, peer, peer, r);
}

int main(void) {
  int r, round;
  void* buffers[2 * RANKS];
  NCCLCHECK(ncclCommInitAll(comms, RANKS, NULL));
  register_windows();
  fill();
  for (round = 0; round < 3; ++round) {
    ring();
    barrier();
    all_to_all();
    barrier();
  }
  synchronize();
  for (r = 0; r < RANKS; ++r) {
    buffers[2 * r] = pointer(r, send_windows[r]);
    buffers[2 * r + 1] = pointer(r, recv_windows[r]);
  }
  NCCLCHECK(ncclGroupStart());
  for (r = 0; r < RANKS; ++r) {
    NCCLCHECK(ncclCommWindowDeregister(comms[r], send_windows[r]));
    NCCLCHECK(ncclCommWindowDeregister(comms[r], recv_windows[r]));
  }
  NCCLCHECK(ncclGroupEnd());
  for (r = 0; r < 2 * RANKS; ++r) NCCLCHECK(ncclMemFree(buffers[r]));
  for (r = 0; r < RANKS; ++r) {
    CUDACHECK(cudaStreamDestroy(streams[r]));
    NCCLCHECK(ncclCommDestroy(comms[r]));
  }
  printf("Success\n");
  return EXIT_SUCCESS;
}
