/* One device per process: the second program of NCCL's documentation, in our words. Where that one
 * has MPI_Bcast for the unique id, this one has a pipe to each process. Written for NCCL and CUDA;
 * nothing here knows of any other library. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "checks.h"
#include "cuda_runtime.h"
#include "nccl.h"

#define RANKS 4

/* What every process does with the id that it got. */
static int run(int my_rank, ncclUniqueId id) {
  const size_t size = 1024 * 1024;
  ncclComm_t comm;
  float *sendbuff, *recvbuff;
  cudaStream_t stream;
  float* host = malloc(size * sizeof(float));
  size_t i;

  if (host == NULL) return EXIT_FAILURE;
  for (i = 0; i < size; ++i) host[i] = (float)(my_rank + (int)(i % 1000));
  CUDACHECK(cudaSetDevice(my_rank));
  CUDACHECK(cudaMalloc((void**)&sendbuff, size * sizeof(float)));
  CUDACHECK(cudaMalloc((void**)&recvbuff, size * sizeof(float)));
  CUDACHECK(cudaMemcpy(sendbuff, host, size * sizeof(float), cudaMemcpyHostToDevice));
  CUDACHECK(cudaStreamCreate(&stream));

  NCCLCHECK(ncclCommInitRank(&comm, RANKS, id, my_rank));
  NCCLCHECK(ncclAllReduce(sendbuff, recvbuff, size, ncclFloat, ncclSum, comm, stream));
  CUDACHECK(cudaStreamSynchronize(stream));

  CUDACHECK(cudaMemcpy(host, recvbuff, size * sizeof(float), cudaMemcpyDeviceToHost));
  for (i = 0; i < size; ++i) {
    if (host[i] != (float)(0 + 1 + 2 + 3 + RANKS * (int)(i % 1000))) {
      printf("rank %d, element %zu: %g\n", my_rank, i, host[i]);
      return EXIT_FAILURE;
    }
  }

  CUDACHECK(cudaFree(sendbuff));
  CUDACHECK(cudaFree(recvbuff));
  CUDACHECK(cudaStreamDestroy(stream));
  NCCLCHECK(ncclCommDestroy(comm));
  free(host);
  printf("rank %d of %d: the sums are right\n", my_rank, RANKS);
  return EXIT_SUCCESS;
}

int main(void) {
  int ends[RANKS][2];
  ncclUniqueId id;
  int r, outcome;

  /* The others are started first: a process that has used the library must not fork. */
  for (r = 1; r < RANKS; ++r) {
    if (pipe(ends[r]) != 0) return EXIT_FAILURE;
    switch (fork()) {
      case -1:
        return EXIT_FAILURE;
      case 0:
        for (int end = 1; end <= r; ++end) close(ends[end][1]); /* or it never sees the end */
        if (read(ends[r][0], &id, sizeof id) != (ssize_t)sizeof id) return EXIT_FAILURE;
        return run(r, id);
    }
  }
  NCCLCHECK(ncclGetUniqueId(&id));
  for (r = 1; r < RANKS; ++r)
    if (write(ends[r][1], &id, sizeof id) != (ssize_t)sizeof id) return EXIT_FAILURE;
  outcome = run(0, id);

  for (r = 1; r < RANKS; ++r) {
    int status = 0;
    if (wait(&status) < 0 || status != 0) outcome = EXIT_FAILURE;
  }
  return outcome;
}
