#include "runtime/process/duplicate_library.hpp"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <string>

#include "anyccl/anyccl.h"
#include "base/error.hpp"

namespace {

std::atomic<int> in_use{0};

}  // namespace

/// Whether the copy that this function belongs to is in use. Exported so that copies find each
/// other.
extern "C" ANYCCL_API int anycclThisCopyInUse(void);
extern "C" int anycclThisCopyInUse(void) {
  return in_use.load();
}

namespace anyccl {
namespace {

std::string file_of(const void* address) {
  Dl_info info{};
  return ::dladdr(address, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "?";
}

/// The file of another copy that is in use, or "".
std::string other_copy() {
  std::string found;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* result) {
        if (info->dlpi_name == nullptr || info->dlpi_name[0] == '\0') return 0;
        void* const library = ::dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD | RTLD_LOCAL);
        if (library == nullptr) return 0;
        void* const symbol = ::dlsym(library, "anycclThisCopyInUse");
        ::dlclose(library);
        if (symbol == nullptr || in_use.load() != 0) return 0;
        const auto asked = reinterpret_cast<int (*)()>(symbol);
        if (asked == &anycclThisCopyInUse || asked() == 0) return 0;
        *static_cast<std::string*>(result) = file_of(symbol);
        return 1;
      },
      &found);
  return found;
}

}  // namespace

Status refuse_duplicate_library() {
  if (in_use.load() != 0) return {};
  const std::string other = other_copy();
  if (!other.empty())
    return error(Code::invalid_usage,
                 "this process already uses another copy of anyccl: {} is in use, {} is refused; "
                 "load only one",
                 other, file_of(&in_use));
  in_use.store(1);
  return {};
}

}  // namespace anyccl
