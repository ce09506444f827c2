/* One device per process, and the unique id over TCP: rank 0 listens, and the others fetch it
 * there. Written for NCCL and CUDA; nothing here knows of any other library. */
#define _POSIX_C_SOURCE 200809L
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "checks.h"
#include "cuda_runtime.h"
#include "nccl.h"

#define RANKS 3
#define COUNT 50000 /* of each rank */

static void fail(const char* what) {
  perror(what);
  exit(EXIT_FAILURE);
}

/* Rank 0 makes the id and hands it to all who ask. */
static ncclUniqueId offer_id(int listener) {
  ncclUniqueId id;
  int r;
  NCCLCHECK(ncclGetUniqueId(&id));
  for (r = 1; r < RANKS; ++r) {
    const int peer = accept(listener, NULL, NULL);
    if (peer < 0) fail("accept");
    if (send(peer, &id, sizeof id, 0) != (ssize_t)sizeof id) fail("send");
    close(peer);
  }
  close(listener);
  return id;
}

static ncclUniqueId fetch_id(const struct sockaddr_in* address) {
  ncclUniqueId id;
  const int root = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(root, (const struct sockaddr*)address, sizeof *address) != 0) fail("connect");
  if (recv(root, &id, sizeof id, MSG_WAITALL) != (ssize_t)sizeof id) fail("recv");
  close(root);
  return id;
}

/* Each rank sums up its part of all vectors, and then all parts are gathered. */
static int run(int rank, ncclUniqueId id) {
  ncclComm_t comm;
  ncclResult_t state;
  cudaStream_t stream;
  float *all, *part, *host = malloc(RANKS * COUNT * sizeof(float));
  int i;
  if (host == NULL) return EXIT_FAILURE;
  for (i = 0; i < RANKS * COUNT; ++i) host[i] = (float)(rank + i % 1000);
  CUDACHECK(cudaSetDevice(rank));
  CUDACHECK(cudaMalloc((void**)&all, RANKS * COUNT * sizeof(float)));
  CUDACHECK(cudaMalloc((void**)&part, COUNT * sizeof(float)));
  CUDACHECK(cudaStreamCreate(&stream));
  CUDACHECK(cudaMemcpy(all, host, RANKS * COUNT * sizeof(float), cudaMemcpyHostToDevice));

  NCCLCHECK(ncclCommInitRank(&comm, RANKS, id, rank));
  NCCLCHECK(ncclReduceScatter(all, part, COUNT, ncclFloat, ncclAvg, comm, stream));
  CUDACHECK(cudaMemset(all, 0, 0));
  NCCLCHECK(ncclAllGather(part, all, COUNT, ncclFloat, comm, stream));
  /* As programs do that want to hear of errors while they wait. */
  while (cudaStreamQuery(stream) == cudaErrorNotReady) {
    NCCLCHECK(ncclCommGetAsyncError(comm, &state));
    NCCLCHECK(state);
  }
  CUDACHECK(cudaStreamSynchronize(stream));

  CUDACHECK(cudaMemcpy(host, all, RANKS * COUNT * sizeof(float), cudaMemcpyDeviceToHost));
  for (i = 0; i < RANKS * COUNT; ++i) {
    if (host[i] == (float)(1 + i % 1000)) continue;
    printf("rank %d, element %d: %g\n", rank, i, host[i]);
    return EXIT_FAILURE;
  }
  CUDACHECK(cudaStreamDestroy(stream));
  CUDACHECK(cudaFree(all));
  CUDACHECK(cudaFree(part));
  NCCLCHECK(ncclCommDestroy(comm));
  free(host);
  printf("rank %d of %d: the means are right\n", rank, RANKS);
  return EXIT_SUCCESS;
}

int main(void) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in address = {0};
  socklen_t length = sizeof address;
  int r, outcome;
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(listener, (struct sockaddr*)&address, sizeof address) != 0) fail("bind");
  if (listen(listener, RANKS) != 0) fail("listen");
  if (getsockname(listener, (struct sockaddr*)&address, &length) != 0) fail("getsockname");

  /* The others are started first: a process that has used the library must not fork. */
  for (r = 1; r < RANKS; ++r) {
    switch (fork()) {
      case -1:
        fail("fork");
        break;
      case 0:
        close(listener);
        return run(r, fetch_id(&address));
    }
  }
  outcome = run(0, offer_id(listener));
  for (r = 1; r < RANKS; ++r) {
    int status = 0;
    if (wait(&status) < 0 || status != 0) outcome = EXIT_FAILURE;
  }
  return outcome;
}
