#include "platform/probe/host_facts.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "base/per_process.hpp"
#include "base/recent.hpp"
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

/// Programs make groups by the dozen, and these are eight files.
double recent_quota() {
  constexpr std::chrono::seconds kMost{1};
  return per_process<Recent<double>>().get(kMost, [] {
    return cgroup_quota(read_text("/proc/self/cgroup"), read_text("/proc/self/mountinfo"));
  });
}

}  // namespace

int usable_cores(int affinity, double quota) {
  return std::max(1, static_cast<int>(std::min<double>(affinity, std::floor(quota))));
}

HostFacts host_facts() {
  HostFacts facts;
  facts.hostname = host_name();
  // Never destroyed: a thread that creates a communicator may be running at exit.
  static const std::string& boot_id =
      *new std::string(read_line("/proc/sys/kernel/random/boot_id"));
  facts.boot_id = boot_id;
  facts.network_namespace = namespace_number("/proc/self/ns/net");
  facts.quota = recent_quota();
  facts.cpus = cpus_of_process();
  facts.cores = usable_cores(static_cast<int>(facts.cpus.count()), facts.quota);
  return facts;
}

}  // namespace anyccl::probe
