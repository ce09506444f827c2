#pragma once
// Ranks, as threads with a device each, whose calls are in queues of these.

#include <dlfcn.h>

#include <cstdlib>

#include "device/issued_calls.hpp"
#include "platform/device/cuda/driver_api.hpp"

namespace anyccl::test {

inline void use_queues(Communicator& comm) {
  ASSERT_EQ(anycclCommUseDeviceQueues(comm.handle()), anycclSuccess)
      << anycclGetLastError(comm.handle());
}

/// Ranks that shared a device would wait for each other where tests free memory.
inline void in_queues(int ranks, const std::function<void(RankOnDevice&)>& body) {
  ::setenv("SIMULATED_CUDA_DEVICES", "8", 0);  // before the driver is first used
  on_devices(ranks, [&](RankOnDevice& rank) {
    use_queues(rank.comm);
    if (!testing::Test::HasFatalFailure()) body(rank);
  });
}

/// Modelled time of the simulated driver.
struct ModelledTime {
  double (*now)() = find<double (*)()>("anyccl_sim_time");
  void (*catch_up)(double) = find<void (*)(double)>("anyccl_sim_catch_up");
  cuda::Error (*synchronize)(cuda::Stream) =
      find<cuda::Error (*)(cuda::Stream)>("cuStreamSynchronize");

  template <typename Function>
  static Function find(const char* name) {
    void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    return reinterpret_cast<Function>(dlsym(driver, name));
  }
};

}  // namespace anyccl::test
