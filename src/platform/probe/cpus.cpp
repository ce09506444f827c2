#include "platform/probe/cpus.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/per_process.hpp"
#include "platform/probe/text_file.hpp"

namespace anyccl::probe {
namespace {

/// The CPUs that a thread may run on; 0: the calling one. None if it has ended. The kernel refuses
/// a set smaller than its own: try larger ones.
CpuSet affinity_of(pid_t thread) {
  struct Free {
    void operator()(cpu_set_t* set) const { CPU_FREE(set); }
  };
  constexpr std::size_t kMost = 1 << 18;
  CpuSet cpus;
  for (std::size_t count = kMostCpus; count <= kMost; count *= 2) {
    const std::unique_ptr<cpu_set_t, Free> set(CPU_ALLOC(count));
    const std::size_t bytes = CPU_ALLOC_SIZE(count);
    if (set == nullptr) break;
    if (::sched_getaffinity(thread, bytes, set.get()) == 0) {
      for (std::size_t cpu = 0; cpu < count; ++cpu)
        if (CPU_ISSET_S(cpu, bytes, set.get())) cpus.set(cpu % kMostCpus);
      break;
    }
    if (errno != EINVAL) break;
  }
  return cpus;
}

bool is_within(const CpuSet& cpus, const CpuSet& larger) {
  return (cpus & ~larger).none();
}

std::uint32_t first_of(const CpuSet& cpus) {
  std::uint32_t cpu = 0;
  while (cpu < kMostCpus && !cpus.test(cpu)) ++cpu;
  return cpu;
}

/// Those that share the last level of cache with this one.
CpuSet sharing_cache_with(std::uint32_t cpu) {
  CpuSet sharing;
  for (int i = 0;; ++i) {
    const std::string list = read_line(
        fmt::format("/sys/devices/system/cpu/cpu{}/cache/index{}/shared_cpu_list", cpu, i));
    if (list.empty()) return sharing;
    sharing = cpus_in(list);  // the last one is of the last level
  }
}

}  // namespace

CpuSet cpus_of_process() {
  CpuSet cpus = affinity_of(0);
  std::error_code problem;
  std::filesystem::directory_iterator task("/proc/self/task", problem);
  for (; !problem && task != end(task); task.increment(problem)) {
    const std::string name = task->path().filename();
    pid_t thread = 0;
    std::from_chars(name.data(), name.data() + name.size(), thread);
    if (thread > 0) cpus |= affinity_of(thread);
  }
  if (cpus.none())
    for (std::size_t cpu = 0; cpu < std::thread::hardware_concurrency(); ++cpu)
      cpus.set(cpu % kMostCpus);
  return cpus;
}

CpuSet cpus_in(std::string_view list) {
  CpuSet cpus;
  const char *at = list.data(), *const end = at + list.size();
  while (at < end) {
    std::size_t first = 0;
    const auto number = std::from_chars(at, end, first);
    if (number.ec != std::errc()) break;
    std::size_t last = first;
    at = number.ptr;
    if (at < end && *at == '-') at = std::from_chars(at + 1, end, last).ptr;
    for (std::size_t cpu = first; cpu <= last && cpu - first < kMostCpus; ++cpu)
      cpus.set(cpu % kMostCpus);
    if (at == end || *at != ',') break;
    ++at;
  }
  return cpus;
}

namespace {

Nearness find_nearness(const CpuSet& cpus) {
  Nearness near;
  const CpuSet sharing = sharing_cache_with(first_of(cpus));
  if (is_within(cpus, sharing)) near.cache = first_of(sharing) + 1;
  const CpuSet nodes = cpus_in(read_line("/sys/devices/system/node/online"));
  for (std::uint32_t node = 0; node < kMostCpus; ++node)
    if (nodes.test(node) && is_within(cpus, cpus_in(read_line(fmt::format(
                                                "/sys/devices/system/node/node{}/cpulist", node)))))
      near.node = node + 1;
  return near;
}

}  // namespace

Nearness nearness_of(const CpuSet& cpus) {
  struct Known {
    std::mutex mutex;
    CpuSet cpus;
    Nearness near;
  };
  if (cpus.none()) return {};
  Known& known = per_process<Known>();
  const std::lock_guard lock(known.mutex);
  if (known.cpus != cpus) {
    known.near = find_nearness(cpus);
    known.cpus = cpus;
  }
  return known.near;
}

}  // namespace anyccl::probe
