/* One thread splits four communicators in two, in a group, and leaves one rank out of a third.
 * Written for NCCL and CUDA; nothing here knows of any other library. */
#include <stdio.h>
#include <stdlib.h>

#include "checks.h"
#include "cuda_runtime.h"
#include "nccl.h"

#define DEVICES 4

/* The sum of all ranks' numbers in their communicators, as each sees it. */
static void sum(const ncclComm_t comms[], const int numbers[], int sums[]) {
  cudaStream_t streams[DEVICES];
  int *send[DEVICES], *recv[DEVICES];
  int d;
  for (d = 0; d < DEVICES; ++d) {
    CUDACHECK(cudaSetDevice(d));
    CUDACHECK(cudaMalloc((void**)&send[d], sizeof(int)));
    CUDACHECK(cudaMalloc((void**)&recv[d], sizeof(int)));
    CUDACHECK(cudaMemcpy(send[d], &numbers[d], sizeof(int), cudaMemcpyHostToDevice));
    CUDACHECK(cudaMemset(recv[d], 0, sizeof(int)));
    CUDACHECK(cudaStreamCreate(&streams[d]));
  }
  NCCLCHECK(ncclGroupStart());
  for (d = 0; d < DEVICES; ++d) {
    if (comms[d] == NCCL_COMM_NULL) continue;
    NCCLCHECK(ncclAllReduce(send[d], recv[d], 1, ncclInt, ncclSum, comms[d], streams[d]));
  }
  NCCLCHECK(ncclGroupEnd());
  for (d = 0; d < DEVICES; ++d) {
    CUDACHECK(cudaStreamSynchronize(streams[d]));
    CUDACHECK(cudaMemcpy(&sums[d], recv[d], sizeof(int), cudaMemcpyDeviceToHost));
    CUDACHECK(cudaStreamDestroy(streams[d]));
    CUDACHECK(cudaFree(send[d]));
    CUDACHECK(cudaFree(recv[d]));
  }
}

static void expect(const int sums[], int a, int b, int c, int d) {
  if (sums[0] == a && sums[1] == b && sums[2] == c && sums[3] == d) return;
  printf("sums are %d %d %d %d instead of %d %d %d %d\n", sums[0], sums[1], sums[2], sums[3], a, b,
         c, d);
  exit(EXIT_FAILURE);
}

int main(void) {
  const int devices[DEVICES] = {3, 0, 2, 1}, numbers[DEVICES] = {1, 10, 100, 1000};
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  ncclComm_t comms[DEVICES], halves[DEVICES], three[DEVICES];
  int sums[DEVICES], d, rank, device;

  NCCLCHECK(ncclCommInitAll(comms, DEVICES, devices));
  config.splitShare = 1;
  config.maxCTAs = 4;
  config.CTAPolicy = NCCL_CTA_POLICY_EFFICIENCY;
  config.hostCftMode = ncclHostCftFallback;
  config.nvlsHostMode = ncclNvlsHostModeDisable;
  config.commName = "halves";
  NCCLCHECK(ncclGroupStart());
  for (d = 0; d < DEVICES; ++d)
    NCCLCHECK(ncclCommSplit(comms[d], d % 2, -d, &halves[d], &config)); /* backwards */
  NCCLCHECK(ncclGroupEnd());
  NCCLCHECK(ncclGroupStart());
  for (d = 0; d < DEVICES; ++d)
    NCCLCHECK(ncclCommSplit(comms[d], d == 2 ? NCCL_SPLIT_NOCOLOR : 0, d, &three[d], NULL));
  NCCLCHECK(ncclGroupEnd());

  for (d = 0; d < DEVICES; ++d) {
    NCCLCHECK(ncclCommCuDevice(comms[d], &device));
    NCCLCHECK(ncclCommUserRank(halves[d], &rank));
    if (device != devices[d] || rank != (d < 2 ? 1 : 0)) return EXIT_FAILURE;
  }
  if (three[2] != NCCL_COMM_NULL) return EXIT_FAILURE;
  sum(comms, numbers, sums);
  expect(sums, 1111, 1111, 1111, 1111);
  sum(halves, numbers, sums);
  expect(sums, 101, 1010, 101, 1010);
  sum(three, numbers, sums);
  expect(sums, 1011, 1011, 0, 1011);

  NCCLCHECK(ncclGroupStart());
  for (d = 0; d < DEVICES; ++d) NCCLCHECK(ncclCommFinalize(halves[d]));
  NCCLCHECK(ncclGroupEnd());
  for (d = 0; d < DEVICES; ++d) {
    NCCLCHECK(ncclCommDestroy(halves[d]));
    if (three[d] != NCCL_COMM_NULL) NCCLCHECK(ncclCommDestroy(three[d]));
    NCCLCHECK(ncclCommDestroy(comms[d]));
  }
  printf("Success\n");
  return EXIT_SUCCESS;
}
