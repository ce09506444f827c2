// Modules and kernels, and the table by which other libraries find all functions.

#include <cstdio>
#include <string>

#include "calls.hpp"
#include "kernels.hpp"
#include "settings.hpp"

using namespace anyccl::cuda;
using namespace anyccl::simulated;

struct anyccl::cuda::ModuleTag {};

namespace {

/// All modules are one: kernels are found by their names.
Module the_module() {
  static ModuleTag module;
  return &module;
}

struct Export {
  const char* name;
  void* function;
};
#define ANYCCL_SIMULATED_ENTRY(name, parameters) {#name, reinterpret_cast<void*>(&name)},
const Export kExports[] = {ANYCCL_CUDA_FUNCTIONS(ANYCCL_SIMULATED_ENTRY)
                               ANYCCL_MORE_CUDA_FUNCTIONS(ANYCCL_SIMULATED_ENTRY)};
#undef ANYCCL_SIMULATED_ENTRY

void* find_export(const std::string& name) {
  for (const char* const suffix : {"_v2", ""})
    for (const Export& one : kExports)
      if (name + suffix == one.name) return one.function;
  return nullptr;
}

}  // namespace

Error cuModuleLoadData(Module* module, const void* image) {
  ANYCCL_SIMULATED_ENTER(context, kInvalidImage);
  if (module == nullptr || image == nullptr) return kInvalidValue;
  *module = the_module();
  return kSuccess;
}

Error cuModuleUnload(Module module) {
  ANYCCL_SIMULATED_ENTER(context, kUnknown);
  return module == the_module() ? kSuccess : kInvalidHandle;
}

Error cuModuleGetFunction(Function* function, Module module, const char* name) {
  ANYCCL_SIMULATED_ENTER(context, kNotFound);
  if (function == nullptr || name == nullptr) return kInvalidValue;
  if (module != the_module()) return kInvalidHandle;
  *function = find_kernel(name);
  return *function == nullptr ? kNotFound : kSuccess;
}

Error cuLaunchKernel(Function kernel, unsigned blocks, unsigned blocks_y, unsigned blocks_z,
                     unsigned threads, unsigned threads_y, unsigned threads_z, unsigned,
                     Stream stream, void** parameters, void** extra) {
  ANYCCL_SIMULATED_ENTER(context, kLaunchFailed);
  if (kernel == nullptr) return kInvalidHandle;
  if (blocks == 0 || threads == 0 || threads_y == 0 || threads_z == 0) return kInvalidValue;
  if (blocks_y != 1 || blocks_z != 1 || extra != nullptr) return kNotSupported;
  if (parameters == nullptr || parameters[0] == nullptr) return kInvalidValue;
  return launch(kernel, blocks, stream, parameters[0]);
}

Error cuGetProcAddress_v2(const char* name, void** function, int, std::uint64_t, int* status) {
  ANYCCL_SIMULATED_ENTER(nothing, kNotFound);
  if (name == nullptr || function == nullptr) return kInvalidValue;
  *function = find_export(name);
  const bool is_found = *function != nullptr;
  if (settings().trace)
    std::fprintf(stderr, "simulated driver: %s is %s\n", name, is_found ? "found" : "not found");
  if (status != nullptr) *status = is_found ? 0 : 1;
  return is_found ? kSuccess : kNotFound;
}
