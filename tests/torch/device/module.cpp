// The Python module simulated_device._C. Its import registers the device with torch, and starts no
// driver, so that a process may be forked after it.

#include <torch/csrc/utils/pybind.h>

#include "driver.hpp"
#include "runtime.hpp"

namespace anyccl::simulated_device {
namespace {

/// The current stream stops until release() of the address that this returns.
std::uintptr_t hold() {
  const c10::DeviceIndex device = current_device();
  const InContext context(device);
  void* word = nullptr;
  SIMULATED_CALL(cuMemHostAlloc, &word, sizeof(std::uint32_t), 0);
  SIMULATED_CALL(cuStreamWaitValue32_v2, native(current_stream(device)),
                 reinterpret_cast<cuda::Address>(word), 1, cuda::kWaitGeq);
  return reinterpret_cast<std::uintptr_t>(word);
}

void release(std::uintptr_t word) {
  // Pairs with the wait of the stream.
  __atomic_store_n(reinterpret_cast<std::uint32_t*>(word), 1U, __ATOMIC_RELEASE);
}

}  // namespace
}  // namespace anyccl::simulated_device

PYBIND11_MODULE(_C, module) {
  using namespace anyccl::simulated_device;
  module.def("device_count", [] { return static_cast<int>(device_count()); });
  module.def("current_device", [] { return static_cast<int>(current_device()); });
  module.def("set_device", [](int device) { set_device(static_cast<c10::DeviceIndex>(device)); });
  module.def("hold", &hold);
  module.def("release", &release);
}
