/* A rank that adds up a mebibyte again and again, until an operation fails; then it prints the
 * error and ends.
 *
 *   all_reduce_loop [MILLISECONDS]    the time limit of each operation
 *
 * Prints "rank R of N runs" after the first one. With LOOPS=N in the environment it ends well after
 * N. With RECEIVE=1 each rank then only waits for a message of the next one, which never comes. */
#include <anyccl/anyccl.h>
#include <stdio.h>
#include <stdlib.h>

static int fail(anycclComm_t comm) {
  printf("%s\n", anycclGetLastError(comm));
  return 1;
}

static int receive(int from, float* into, anycclComm_t comm) {
  if (anycclRecv(into, 1, anycclFloat32, from, comm, NULL) != anycclSuccess) return fail(comm);
  printf("it came\n");
  return 1;
}

int main(int argc, char** argv) {
  enum { kCount = 1 << 18 };
  static float numbers[kCount];
  const char* loops = getenv("LOOPS");
  const long most = loops == NULL ? 0 : atol(loops);
  anycclComm_t comm = NULL;
  int rank = 0, size = 0;
  setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
  if (anycclCommInitEnv(&comm) != anycclSuccess) return fail(NULL);
  if (anycclCommUserRank(comm, &rank) != anycclSuccess) return fail(comm);
  if (anycclCommCount(comm, &size) != anycclSuccess) return fail(comm);
  anycclCall_t call = {.size = sizeof call, .collective = anycclCollAllReduce, .sendbuff = numbers};
  call.recvbuff = numbers;
  call.count = kCount;
  call.datatype = anycclFloat32;
  call.op = anycclSum;
  call.timeout_ms = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
  for (long done = 0; most == 0 || done < most; done++) {
    for (int i = 0; i < kCount; i++) numbers[i] = (float)(rank + i % 7);
    if (anycclRun(&call, comm) != anycclSuccess) return fail(comm);
    for (int i = 0; i < kCount; i++) {
      if (numbers[i] == (float)(size * (size - 1) / 2 + size * (i % 7))) continue;
      printf("WRONG at %d: %g\n", i, (double)numbers[i]);
      return 1;
    }
    if (done == 0) printf("rank %d of %d runs\n", rank, size);
    if (getenv("RECEIVE") != NULL) return receive((rank + 1) % size, numbers, comm);
  }
  return anycclCommDestroy(comm) == anycclSuccess ? 0 : fail(comm);
}
