#include "platform/probe/host_facts.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "platform/probe/cgroup.hpp"
#include "platform/probe/text_file.hpp"

namespace anyccl::probe {
namespace {

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : std::string();
}

std::uint64_t namespace_number(const char* path) {
  struct stat info {};
  return ::stat(path, &info) == 0 ? info.st_ino : 0;
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
  facts.cpus = cpus_of_process();
  facts.cores = usable_cores(static_cast<int>(facts.cpus.count()), facts.quota);
  return facts;
}

}  // namespace anyccl::probe
