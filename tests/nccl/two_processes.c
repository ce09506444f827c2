/* Two processes that know NCCL alone: its header, and memory of the host. Each check is of one
 * function, for all elements. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nccl.h"

#define RANKS 2
#define COUNT 30000 /* Elements of a block. */

#define CHECK(call)                                                               \
  do {                                                                            \
    const ncclResult_t returned = (call);                                         \
    if (returned != ncclSuccess) {                                                \
      printf("%s:%d: %s: %s\n", __FILE__, __LINE__, ncclGetErrorString(returned), \
             ncclGetLastError(NULL));                                             \
      exit(EXIT_FAILURE);                                                         \
    }                                                                             \
  } while (0)

/* What rank `rank` has at first. */
static float of(int rank, size_t i) {
  return (float)(1000 * rank + (int)(i % 100));
}

static void expect(const float* data, size_t i, float value, const char* what) {
  if (data[i] == value) return;
  printf("%s: element %zu is %g and not %g\n", what, i, data[i], value);
  exit(EXIT_FAILURE);
}

static void reduce(ncclComm_t comm, int rank, const float* mine, float* result) {
  size_t i;
  CHECK(ncclAllReduce(mine, result, COUNT, ncclFloat, ncclSum, comm, NULL));
  for (i = 0; i < COUNT; ++i) expect(result, i, of(0, i) + of(1, i), "AllReduce");
  CHECK(ncclReduce(mine, result, COUNT, ncclFloat, ncclMax, 1, comm, NULL));
  for (i = 0; rank == 1 && i < COUNT; ++i) expect(result, i, of(1, i), "Reduce");
  CHECK(ncclReduceScatter(mine, result, COUNT / 2, ncclFloat, ncclAvg, comm, NULL));
  for (i = 0; i < COUNT / 2; ++i)
    expect(result, i, 500 + of(0, i + (size_t)rank * COUNT / 2), "ReduceScatter");
}

static void move(ncclComm_t comm, int rank, const float* mine, float* result) {
  size_t i;
  CHECK(ncclBroadcast(mine, result, COUNT, ncclFloat, 1, comm, NULL));
  for (i = 0; i < COUNT; ++i) expect(result, i, of(1, i), "Broadcast");
  CHECK(ncclAllGather(mine, result, COUNT, ncclFloat, comm, NULL));
  for (i = 0; i < RANKS * COUNT; ++i) expect(result, i, of((int)(i / COUNT), i), "AllGather");
  CHECK(ncclAlltoAll(mine, result, COUNT / 2, ncclFloat, comm, NULL));
  for (i = 0; i < COUNT / 2; ++i) {
    expect(result, i, of(0, i + (size_t)rank * COUNT / 2), "AlltoAll");
    expect(result, COUNT / 2 + i, of(1, i + (size_t)rank * COUNT / 2), "AlltoAll");
  }
}

/* Both send before they receive, which only a group can do; a collective is in it, too. */
static void group(ncclComm_t comm, int rank, const float* mine, float* result) {
  const int peer = 1 - rank;
  int64_t sum = rank + 1;
  size_t i;
  CHECK(ncclGroupStart());
  CHECK(ncclSend(mine, COUNT, ncclFloat, peer, comm, NULL));
  CHECK(ncclRecv(result, COUNT, ncclFloat, peer, comm, NULL));
  CHECK(ncclAllReduce(&sum, &sum, 1, ncclInt64, ncclSum, comm, NULL));
  CHECK(ncclGroupEnd());
  for (i = 0; i < COUNT; ++i) expect(result, i, of(peer, i), "Recv");
  if (sum != 3) exit(EXIT_FAILURE);
}

static int run(int rank, ncclUniqueId id) {
  static float mine[COUNT], result[RANKS * COUNT];
  ncclComm_t comm, half;
  int count, number, device;
  size_t i;

  for (i = 0; i < COUNT; ++i) mine[i] = of(rank, i);
  CHECK(ncclCommInitRank(&comm, RANKS, id, rank));
  CHECK(ncclCommCount(comm, &count));
  CHECK(ncclCommUserRank(comm, &number));
  CHECK(ncclCommCuDevice(comm, &device));
  if (count != RANKS || number != rank || device != 0) return EXIT_FAILURE;
  reduce(comm, rank, mine, result);
  move(comm, rank, mine, result);
  group(comm, rank, mine, result);
  CHECK(ncclCommSplit(comm, rank, 0, &half, NULL));
  CHECK(ncclAllReduce(mine, result, COUNT, ncclFloat, ncclSum, half, NULL));
  for (i = 0; i < COUNT; ++i) expect(result, i, of(rank, i), "AllReduce of a split");
  CHECK(ncclCommDestroy(half));
  CHECK(ncclCommFinalize(comm));
  CHECK(ncclCommDestroy(comm));
  return EXIT_SUCCESS;
}

int main(void) {
  int ends[2], status = 0;
  ncclUniqueId id;
  pid_t other;

  if (pipe(ends) != 0) return EXIT_FAILURE;
  other = fork(); /* Before this process uses the library. */
  if (other < 0) return EXIT_FAILURE;
  if (other == 0) {
    if (read(ends[0], &id, sizeof id) != (ssize_t)sizeof id) return EXIT_FAILURE;
    return run(1, id);
  }
  CHECK(ncclGetUniqueId(&id));
  if (write(ends[1], &id, sizeof id) != (ssize_t)sizeof id) return EXIT_FAILURE;
  if (run(0, id) != EXIT_SUCCESS || waitpid(other, &status, 0) != other) return EXIT_FAILURE;
  return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE;
}
