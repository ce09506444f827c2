#include "platform/device/cuda/driver.hpp"

#include <dlfcn.h>

#include <string>

#include "base/error.hpp"
#include "base/per_process.hpp"

namespace anyccl::cuda {
namespace {

constexpr const char* kLibrary = "libcuda.so.1";

/// The driver, or why there is none.
struct Loaded {
  Loaded() : status(load()) {}
  Status load();

  Driver driver;
  Status status;
};

Status Loaded::load() {
  // Never closed: programs and other libraries have it, too.
  void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return error(Code::unsupported, "there is no CUDA driver here: {}", dlerror());
  const char* missing = nullptr;
#define ANYCCL_LOAD(name, parameters)                                           \
  driver.name = reinterpret_cast<decltype(driver.name)>(dlsym(library, #name)); \
  if (driver.name == nullptr) missing = #name;
  ANYCCL_CUDA_FUNCTIONS(ANYCCL_LOAD)
#undef ANYCCL_LOAD
  if (missing != nullptr)
    return error(Code::unsupported, "the CUDA driver has no {}: it must be of CUDA 11.7 or later",
                 missing);
  const Error code = driver.cuInit(0);
  if (code == kNoDevice) return Status(Code::unsupported, "the CUDA driver finds no device");
  return driver.check(code, "cuInit");
}

}  // namespace

Status Driver::check(Error code, const char* function) const {
  if (code == kSuccess) return {};
  const char *name = nullptr, *words = nullptr;
  if (cuGetErrorName(code, &name) != kSuccess || name == nullptr) name = "an unknown error";
  if (cuGetErrorString(code, &words) != kSuccess || words == nullptr) words = "no description";
  return error(Code::device_error, "{}: {} ({}): {}", function, name, code, words);
}

Result<const Driver*> load_driver() {
  const Loaded& loaded = per_process<Loaded>();
  if (!loaded.status.ok()) return loaded.status;
  return &loaded.driver;
}

bool is_driver_loaded() {
  void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_NOLOAD);
  if (library != nullptr) dlclose(library);  // it counts users
  return library != nullptr;
}

}  // namespace anyccl::cuda
