/* A program with a profiler of its own: its ncclAllReduce comes before the library's, which it
 * finds under its second name. */
#include <stdio.h>
#include <stdlib.h>

#include "nccl.h"

static int calls = 0;

__attribute__((visibility("default"))) ncclResult_t ncclAllReduce(const void* sendbuff,
                                                                  void* recvbuff, size_t count,
                                                                  ncclDataType_t datatype,
                                                                  ncclRedOp_t op, ncclComm_t comm,
                                                                  cudaStream_t stream) {
  ++calls;
  return pncclAllReduce(sendbuff, recvbuff, count, datatype, op, comm, stream);
}

int main(void) {
  ncclComm_t comm;
  float x = 3, sum = 0;
  if (ncclCommInitAll(&comm, 1, NULL) != ncclSuccess) return EXIT_FAILURE;
  if (ncclAllReduce(&x, &sum, 1, ncclFloat, ncclSum, comm, NULL) != ncclSuccess)
    return EXIT_FAILURE;
  if (ncclCommDestroy(comm) != ncclSuccess) return EXIT_FAILURE;
  printf("%d call, sum %g\n", calls, sum);
  return calls == 1 && sum == 3 ? EXIT_SUCCESS : EXIT_FAILURE;
}
