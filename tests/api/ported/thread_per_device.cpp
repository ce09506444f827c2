// One process, one thread for each device. Each thread joins by the id that all share, copies its
// data in its stream, and measures by events what the stream does. Written for NCCL and CUDA;
// nothing here knows of any other library.
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "checks.h"
#include "cuda_runtime.h"
#include "nccl.h"

namespace {

void work(int device, int devices, ncclUniqueId id) {
  const std::size_t count = 1 << 20;
  std::vector<float> host(count);
  float *send = nullptr, *recv = nullptr, ms = -1;
  cudaStream_t stream;
  cudaEvent_t start, end;
  ncclComm_t comm;

  CUDACHECK(cudaSetDevice(device));
  CUDACHECK(cudaMalloc((void**)&send, count * sizeof(float)));
  CUDACHECK(cudaMalloc((void**)&recv, count * sizeof(float)));
  CUDACHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CUDACHECK(cudaEventCreate(&start));
  CUDACHECK(cudaEventCreate(&end));
  NCCLCHECK(ncclCommInitRank(&comm, devices, id, device));

  for (std::size_t i = 0; i < count; ++i)
    host[i] = static_cast<float>(device) + static_cast<float>(i % 100);
  CUDACHECK(
      cudaMemcpyAsync(send, host.data(), count * sizeof(float), cudaMemcpyHostToDevice, stream));
  CUDACHECK(cudaEventRecord(start, stream));
  NCCLCHECK(ncclAllReduce(send, recv, count, ncclFloat32, ncclMax, comm, stream));
  NCCLCHECK(ncclBroadcast(send, send, count, ncclFloat32, 1, comm, stream));
  NCCLCHECK(ncclAllReduce(send, recv, count, ncclFloat32, ncclSum, comm, stream)); /* of rank 1's */
  CUDACHECK(cudaEventRecord(end, stream));
  CUDACHECK(
      cudaMemcpyAsync(host.data(), recv, count * sizeof(float), cudaMemcpyDeviceToHost, stream));
  CUDACHECK(cudaStreamSynchronize(stream));
  CUDACHECK(cudaEventElapsedTime(&ms, start, end));

  for (std::size_t i = 0; i < count; ++i) {
    if (host[i] == static_cast<float>(devices) * static_cast<float>(1 + i % 100) && ms >= 0)
      continue;
    std::printf("device %d, element %zu: %g, after %g ms\n", device, i, host[i], ms);
    std::exit(EXIT_FAILURE);
  }
  NCCLCHECK(ncclCommFinalize(comm));
  NCCLCHECK(ncclCommDestroy(comm));
  CUDACHECK(cudaEventDestroy(start));
  CUDACHECK(cudaEventDestroy(end));
  CUDACHECK(cudaStreamDestroy(stream));
  CUDACHECK(cudaFree(send));
  CUDACHECK(cudaFree(recv));
}

}  // namespace

int main() {
  int devices = 0;
  ncclUniqueId id;
  CUDACHECK(cudaGetDeviceCount(&devices));
  NCCLCHECK(ncclGetUniqueId(&id));
  std::vector<std::thread> threads;
  for (int device = 0; device < devices; ++device) threads.emplace_back(work, device, devices, id);
  for (std::thread& thread : threads) thread.join();
  std::printf("%d threads: the sums are right\n", devices);
  return EXIT_SUCCESS;
}
