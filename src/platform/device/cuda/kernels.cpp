#include "platform/device/cuda/kernels.hpp"

#include "base/error.hpp"
#include "base/types.hpp"

namespace anyccl::cuda {
namespace {

/// What a driver can load, and finds nothing in.
constexpr const char* kEmptyImage = ".version 6.3\n.target sm_75\n.address_size 64\n";

}  // namespace

Result<Module> Kernels::module_of(const Driver& driver, Kind kind, DType type) {
  Module& module = modules_[kind][static_cast<std::size_t>(type)];
  if (module != nullptr) return module;
  const char* const image = kKernelImages[kind][static_cast<std::size_t>(type)];
  ANYCCL_CHECK(
      driver.check(driver.cuModuleLoadData(&module, image == nullptr ? kEmptyImage : image),
                   "cuModuleLoadData"));
  return module;
}

Result<Function> Kernels::find(const Driver& driver, Kind kind, DType type,
                               const std::string& name) {
  if (static_cast<std::size_t>(type) >= kDTypes)
    return error(Code::unsupported, "there is no type {}", static_cast<int>(type));
  const std::lock_guard lock(mutex_);
  if (const auto found = known_.find(name); found != known_.end()) return found->second;
  ANYCCL_TRY(const Module module, module_of(driver, kind, type));
  Function function = nullptr;
  const Error code = driver.cuModuleGetFunction(&function, module, name.c_str());
  if (code == kNotFound) return nullptr;
  ANYCCL_CHECK(driver.check(code, "cuModuleGetFunction"));
  known_[name] = function;
  return function;
}

Result<Function> Kernels::find(const Driver& driver, Reduction what) {
  ANYCCL_TRY(const Function found,
             find(driver, reduce, what.dtype,
                  fmt::format("anyccl_{}_{}", name_of(what.op), name_of(what.dtype))));
  if (found != nullptr) return found;
  return error(Code::unsupported, "no kernel of a device makes the {} of {}{}", name_of(what.op),
               name_of(what.dtype),
               kKernelImages[0][0] == nullptr ? ": this library was built without kernels" : "");
}

Result<Function> Kernels::find_exchange(const Driver& driver, DType type) {
  ANYCCL_TRY(const Function found,
             find(driver, exchange, type, fmt::format("anyccl_exchange_{}", name_of(type))));
  if (found != nullptr) return found;
  return error(Code::unsupported, "this library was built without kernels");
}

void Kernels::unload(const Driver& driver) {
  for (auto& modules : modules_)
    for (Module& module : modules)
      if (module != nullptr) driver.cuModuleUnload(std::exchange(module, nullptr));
  known_.clear();
}

}  // namespace anyccl::cuda
