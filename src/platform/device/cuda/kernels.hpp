#pragma once
// Kernels of this library on a CUDA device.

#include <map>
#include <mutex>
#include <string>

#include "platform/device/cuda/driver.hpp"
#include "platform/device/device.hpp"
#include "platform/reduce/kernels.hpp"

namespace anyccl::cuda {

/// PTX with the kernels of each type, by DType; null: this library was built without them.
extern const char* const kKernelImages[kDTypes];

/// Those of one device. The driver compiles the kernels of a type when one is first asked for,
/// which takes tenths of a second unless it has done so before.
///
/// Threads: any, in a DeviceScope.
class Kernels {
 public:
  /// Errors: unsupported, if there is none.
  Result<Function> find(const Driver& driver, Reduction what);
  /// The device is about to be closed.
  void unload(const Driver& driver);

 private:
  Result<Module> module_of(const Driver& driver, DType type);

  std::mutex mutex_;
  Module modules_[kDTypes] = {};
  std::map<std::string, Function> known_;
};

}  // namespace anyccl::cuda
