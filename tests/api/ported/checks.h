/* What NVIDIA's programs have at their beginning, shared by those here: a failed call ends the
 * program. Written for NCCL and CUDA, and ported as they are. */
#include <stdio.h>
#include <stdlib.h>

#define CUDACHECK(call)                                                     \
  do {                                                                      \
    const cudaError_t error = (call);                                       \
    if (error != cudaSuccess) {                                             \
      printf("%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
      exit(EXIT_FAILURE);                                                   \
    }                                                                       \
  } while (0)

#define NCCLCHECK(call)                                                      \
  do {                                                                       \
    const ncclResult_t result = (call);                                      \
    if (result != ncclSuccess) {                                             \
      printf("%s:%d: %s\n", __FILE__, __LINE__, ncclGetErrorString(result)); \
      exit(EXIT_FAILURE);                                                    \
    }                                                                        \
  } while (0)
