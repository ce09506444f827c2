/* One device per process, started by mpirun; MPI hands round the unique id and the names of hosts,
 * from which each process takes its device. Written for NCCL, CUDA and MPI; nothing here knows of
 * any other library. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checks.h"
#include "cuda_runtime.h"
#include "nccl.h"

#define MPICHECK(call)                           \
  do {                                           \
    if ((call) != MPI_SUCCESS) {                 \
      printf("line %d: MPI failed\n", __LINE__); \
      exit(EXIT_FAILURE);                        \
    }                                            \
  } while (0)

#define MOST_RANKS 64

int main(int argc, char** argv) {
  const size_t count = 100000;
  static char names[MOST_RANKS][MPI_MAX_PROCESSOR_NAME];
  int rank, ranks, device = 0, length, r;
  size_t i;
  ncclUniqueId id;
  ncclComm_t comm;
  cudaStream_t stream;
  double *send, *recv, *host = malloc(count * sizeof(double)),
                       *by_mpi = malloc(count * sizeof(double));

  MPICHECK(MPI_Init(&argc, &argv));
  MPICHECK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  MPICHECK(MPI_Comm_size(MPI_COMM_WORLD, &ranks));
  if (host == NULL || by_mpi == NULL || ranks > MOST_RANKS) return EXIT_FAILURE;
  MPICHECK(MPI_Get_processor_name(names[rank], &length));
  MPICHECK(MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, names, MPI_MAX_PROCESSOR_NAME,
                         MPI_CHAR, MPI_COMM_WORLD));
  for (r = 0; r < rank; ++r)
    if (strcmp(names[r], names[rank]) == 0) ++device;

  if (rank == 0) NCCLCHECK(ncclGetUniqueId(&id));
  MPICHECK(MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD));
  CUDACHECK(cudaSetDevice(device));
  CUDACHECK(cudaMalloc((void**)&send, count * sizeof(double)));
  CUDACHECK(cudaMalloc((void**)&recv, count * sizeof(double)));
  CUDACHECK(cudaStreamCreate(&stream));
  NCCLCHECK(ncclCommInitRank(&comm, ranks, id, rank));

  for (i = 0; i < count; ++i) host[i] = (double)(rank * 1000 + (int)(i % 777));
  CUDACHECK(cudaMemcpy(send, host, count * sizeof(double), cudaMemcpyHostToDevice));
  NCCLCHECK(ncclAllReduce(send, recv, count, ncclDouble, ncclSum, comm, stream));
  CUDACHECK(cudaStreamSynchronize(stream));
  MPICHECK(MPI_Allreduce(host, by_mpi, (int)count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
  CUDACHECK(cudaMemcpy(host, recv, count * sizeof(double), cudaMemcpyDeviceToHost));
  if (memcmp(host, by_mpi, count * sizeof(double)) != 0) {
    printf("rank %d: the sums are not those of MPI\n", rank);
    return EXIT_FAILURE;
  }

  NCCLCHECK(ncclCommDestroy(comm));
  CUDACHECK(cudaStreamDestroy(stream));
  CUDACHECK(cudaFree(send));
  CUDACHECK(cudaFree(recv));
  free(host);
  free(by_mpi);
  printf("rank %d of %d, device %d: the sums are those of MPI\n", rank, ranks, device);
  MPICHECK(MPI_Finalize());
  return EXIT_SUCCESS;
}
