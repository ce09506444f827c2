#include "platform/probe/host_facts.hpp"

#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <memory>
#include <thread>

#include "platform/probe/cgroup.hpp"
#include "platform/probe/text_file.hpp"

namespace anyccl {
namespace {

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : std::string();
}

std::uint64_t namespace_number(const char* path) {
  struct stat info {};
  return ::stat(path, &info) == 0 ? info.st_ino : 0;
}

/// CPUs that this thread may run on. The kernel refuses a set smaller than its own: try larger
/// ones.
int affinity_cores() {
  struct Free {
    void operator()(cpu_set_t* set) const { CPU_FREE(set); }
  };
  constexpr std::size_t kMost = 1 << 18;
  for (std::size_t cpus = CPU_SETSIZE; cpus <= kMost; cpus *= 2) {
    const std::unique_ptr<cpu_set_t, Free> set(CPU_ALLOC(cpus));
    const std::size_t bytes = CPU_ALLOC_SIZE(cpus);
    if (set == nullptr) break;
    if (::sched_getaffinity(0, bytes, set.get()) == 0) return CPU_COUNT_S(bytes, set.get());
    if (errno != EINVAL) break;
  }
  return static_cast<int>(std::thread::hardware_concurrency());
}

}  // namespace

int usable_cores(int affinity, double quota) {
  return std::max(1, static_cast<int>(std::min<double>(affinity, std::floor(quota))));
}

HostFacts host_facts() {
  HostFacts facts;
  facts.hostname = host_name();
  facts.boot_id = read_line("/proc/sys/kernel/random/boot_id");
  facts.network_namespace = namespace_number("/proc/self/ns/net");
  facts.quota = cgroup_quota(read_text("/proc/self/cgroup"), read_text("/proc/self/mountinfo"));
  facts.cores = usable_cores(affinity_cores(), facts.quota);
  return facts;
}

}  // namespace anyccl
