#include "platform/probe/machine.hpp"

#include <fmt/format.h>

#include <cmath>

#include "base/hash.hpp"
#include "platform/probe/host_facts.hpp"
#include "platform/probe/text_file.hpp"

namespace anyccl::probe {
namespace {

std::string or_unknown(std::string text) {
  return text.empty() ? "unknown" : std::move(text);
}

/// Model names alone are vague in virtual machines, and Arm has none.
std::string cpu_model() {
  const std::string text = read_text("/proc/cpuinfo");
  std::string model;
  for (const char* key : {"model name", "cpu family", "model", "CPU implementer", "CPU part"})
    if (const std::string value = cpu_fact(text, key); !value.empty())
      model += (model.empty() ? "" : " ") + value;
  return model;
}

std::string caches_of_first_core() {
  std::string caches;
  for (int i = 0;; ++i) {
    const std::string folder = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/", i);
    const std::string level = read_line(folder + "level");
    if (level.empty()) return caches;
    if (read_line(folder + "type") == "Instruction") continue;
    caches += fmt::format("{}L{} {} {}", caches.empty() ? "" : ", ", level,
                          read_line(folder + "size"), read_line(folder + "shared_cpu_list"));
  }
}

}  // namespace

std::string cpu_fact(std::string_view cpuinfo, std::string_view key) {
  while (!cpuinfo.empty()) {
    const std::string_view line = cpuinfo.substr(0, cpuinfo.find('\n'));
    cpuinfo.remove_prefix(std::min(cpuinfo.size(), line.size() + 1));
    const std::size_t colon = line.find(':');
    const std::string_view name = line.substr(0, colon);
    if (colon == line.npos || name.substr(0, name.find('\t')) != key) continue;
    const std::size_t begin = line.find_first_not_of(' ', colon + 1);
    return std::string(begin == line.npos ? "" : line.substr(begin));
  }
  return "";
}

Machine this_machine() {
  return {.cpu = or_unknown(cpu_model()),
          .cores = or_unknown(read_line("/sys/devices/system/cpu/online")),
          .nodes = or_unknown(read_line("/sys/devices/system/node/online")),
          .caches = or_unknown(caches_of_first_core()),
          .quota = host_facts().quota};
}

std::string describe(const Machine& m) {
  return fmt::format("{}, cores {}{}, NUMA nodes {}, caches {}", m.cpu, m.cores,
                     std::isfinite(m.quota) ? fmt::format(" (quota {:g})", m.quota) : "", m.nodes,
                     m.caches);
}

std::string fingerprint(const Machine& machine) {
  return fmt::format("{:016x}", hash_of(describe(machine) + " anyccl " ANYCCL_VERSION_TEXT));
}

}  // namespace anyccl::probe
