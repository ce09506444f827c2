#include "platform/device/cuda/driver.hpp"

#include <dlfcn.h>
#include <link.h>

#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/per_process.hpp"

namespace anyccl::cuda {
namespace {

constexpr const char* kLibrary = "libcuda.so.1";

/// Whether the process has it already.
bool is_loaded() {
  const auto is_driver = [](dl_phdr_info* module, std::size_t, void*) {
    const char* const name = module->dlpi_name;
    return name != nullptr && std::string_view(name).find("libcuda.so") != std::string_view::npos
               ? 1
               : 0;
  };
  return dl_iterate_phdr(is_driver, nullptr) != 0;
}

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

Context current_context() {
  // ThreadSanitizer's dlopen() must not meet its own in dl_iterate_phdr() of another thread.
  if (!is_loaded()) return nullptr;
  void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  const auto get = reinterpret_cast<Error (*)(Context*)>(dlsym(library, "cuCtxGetCurrent"));
  Context context = nullptr;
  const bool found = get != nullptr && get(&context) == kSuccess;
  dlclose(library);  // it counts users, and the program stays one
  return found ? context : nullptr;
}

}  // namespace anyccl::cuda
