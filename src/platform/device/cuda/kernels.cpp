#include "platform/device/cuda/kernels.hpp"

#include "base/error.hpp"
#include "base/types.hpp"

namespace anyccl::cuda {
namespace {

/// What a driver can load, and finds nothing in.
constexpr const char* kEmptyImage = ".version 6.3\n.target sm_75\n.address_size 64\n";

}  // namespace

Result<Module> Kernels::module_of(const Driver& driver, DType type) {
  Module& module = modules_[static_cast<std::size_t>(type)];
  if (module != nullptr) return module;
  const char* const image = kKernelImages[static_cast<std::size_t>(type)];
  ANYCCL_CHECK(
      driver.check(driver.cuModuleLoadData(&module, image == nullptr ? kEmptyImage : image),
                   "cuModuleLoadData"));
  return module;
}

Result<Function> Kernels::find(const Driver& driver, Reduction what) {
  if (static_cast<std::size_t>(what.dtype) >= kDTypes)
    return error(Code::unsupported, "there is no type {}", static_cast<int>(what.dtype));
  const std::string name = fmt::format("anyccl_{}_{}", name_of(what.op), name_of(what.dtype));
  const std::lock_guard lock(mutex_);
  if (const auto found = known_.find(name); found != known_.end()) return found->second;
  ANYCCL_TRY(const Module module, module_of(driver, what.dtype));
  Function function = nullptr;
  const Error code = driver.cuModuleGetFunction(&function, module, name.c_str());
  if (code == kNotFound)
    return error(Code::unsupported, "no kernel of a device makes the {} of {}{}", name_of(what.op),
                 name_of(what.dtype),
                 kKernelImages[0] == nullptr ? ": this library was built without kernels" : "");
  ANYCCL_CHECK(driver.check(code, "cuModuleGetFunction"));
  known_[name] = function;
  return function;
}

void Kernels::unload(const Driver& driver) {
  for (Module& module : modules_)
    if (module != nullptr) driver.cuModuleUnload(std::exchange(module, nullptr));
  known_.clear();
}

}  // namespace anyccl::cuda
