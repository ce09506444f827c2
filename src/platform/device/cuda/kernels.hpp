#pragma once
// Kernels of this library on a CUDA device.

#include <map>
#include <mutex>
#include <string>

#include "platform/device/cuda/driver.hpp"
#include "platform/device/device.hpp"
#include "platform/reduce/kernels.hpp"

namespace anyccl::cuda {

/// PTX with the kernels of each type, by DType: those that reduce, and the one that exchanges. They
/// are null if this library was built without them.
extern const char* const kKernelImages[2][kDTypes];

/// Those of one device. The driver compiles an image when one of its kernels is first asked for,
/// which takes tenths of a second unless it has done so before.
///
/// Threads: any, in a DeviceScope.
class Kernels {
 public:
  /// The kernel that reduces. Errors: unsupported, if there is none.
  Result<Function> find(const Driver& driver, Reduction what);
  /// The kernel that exchanges elements of this type.
  Result<Function> find_exchange(const Driver& driver, DType type);
  /// The device is about to be closed.
  void unload(const Driver& driver);

 private:
  enum Kind : std::uint8_t { reduce, exchange };
  /// Returns null if there is no such kernel.
  Result<Function> find(const Driver& driver, Kind kind, DType type, const std::string& name);
  Result<Module> module_of(const Driver& driver, Kind kind, DType type);

  std::mutex mutex_;
  Module modules_[2][kDTypes] = {};
  std::map<std::string, Function> known_;
};

}  // namespace anyccl::cuda
