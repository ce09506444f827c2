#pragma once
// The functions here say on which CPUs this process may run, and what is near these. The hello of
// each rank carries that, so that all ranks of a host know which of them share cores or a cache.

#include <bitset>
#include <cstdint>
#include <string_view>

namespace anyccl::probe {

/// CPUs of one host by their numbers; those from kMostCpus on count as their remainder.
inline constexpr std::size_t kMostCpus = 1024;
using CpuSet = std::bitset<kMostCpus>;

/// Those that at least one thread of this process may run on now: programs often bind each of their
/// threads to one core.
CpuSet cpus_of_process();
/// Reads a list such as "0-3,8" up to the first place that cannot be understood.
CpuSet cpus_in(std::string_view list);

/// The cache and the memory node that are near all CPUs of a set: the number of the first CPU or of
/// the node, plus 1; 0: not known, or not one for all.
struct Nearness {
  std::uint32_t cache = 0;  ///< The last level.
  std::uint32_t node = 0;   ///< The memory node.
};
/// Reads /sys.
Nearness nearness_of(const CpuSet& cpus);

}  // namespace anyccl::probe
