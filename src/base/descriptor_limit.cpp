#include "base/descriptor_limit.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <limits>
#include <mutex>

namespace anyccl {
namespace {

constexpr rlim_t kMost = rlim_t{1} << 20;

}  // namespace

void raise_descriptor_limit() {
  static std::once_flag once;
  std::call_once(once, [] {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    const rlim_t wanted = std::min(limit.rlim_max, kMost);
    if (limit.rlim_cur >= wanted) return;
    limit.rlim_cur = wanted;
    ::setrlimit(RLIMIT_NOFILE, &limit);  // where it is forbidden, the old limit stays
  });
}

std::size_t descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  return static_cast<std::size_t>(
      std::min<rlim_t>(limit.rlim_cur, std::numeric_limits<std::size_t>::max()));
}

}  // namespace anyccl
