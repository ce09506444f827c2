#pragma once
// Kernels include this header, as the last one, to be compiled for the simulated driver: they run
// over a grid as on a device, block by block, and say what memory they use. A kernel is a function
// of one struct of plain data:
//
//   void scale(ScaleArgs args) {
//     float* const x = ANYCCL_PLACE(float, args.x, args.count * sizeof(float), 1);
//     if (x == nullptr) return;  // the device is lost now
//     for (auto i = blockIdx.x; i < args.count; i += gridDim.x) x[i] *= args.by;
//   }
//   ANYCCL_KERNEL(scale, ScaleArgs, scale)

#include <cstddef>

#include "control.hpp"

namespace anyccl::simulated {

struct Dimensions {
  unsigned x = 0, y = 0, z = 0;
};
inline thread_local Dimensions threadIdx, blockIdx, blockDim{1, 1, 1}, gridDim{1, 1, 1};

/// One block after the other, in any order: a block that waits for another one hangs.
template <typename Args>
void run_grid(void (*body)(Args), const void* args, unsigned blocks, unsigned order) {
  gridDim = {blocks, 1, 1};
  for (unsigned i = 0; i < blocks; ++i) {
    blockIdx.x = (i * 7 + order) % blocks;  // there are at most 4
    body(*static_cast<const Args*>(args));
  }
}

}  // namespace anyccl::simulated

using anyccl::simulated::blockDim;
using anyccl::simulated::blockIdx;
using anyccl::simulated::gridDim;
using anyccl::simulated::threadIdx;

#define __global__
#define __device__

/// Memory that the kernel uses; null if it is none of a device's and not pinned.
#define ANYCCL_PLACE(type, address, bytes, writes) \
  static_cast<type*>(anyccl_sim_place(address, bytes, writes))

/// Defines what cuModuleGetFunction() looks for.
#define ANYCCL_KERNEL(name, Args, body)                                                         \
  extern "C" {                                                                                  \
  extern __attribute__((visibility("default"))) const std::size_t sim_bytes_##name;             \
  const std::size_t sim_bytes_##name = sizeof(Args);                                            \
  __attribute__((visibility("default"))) void sim_run_##name(const void* args, unsigned blocks, \
                                                             unsigned order) {                  \
    anyccl::simulated::run_grid<Args>(body, args, blocks, order);                               \
  }                                                                                             \
  }
