#pragma once
// A Machine describes the hardware on which times are measured. `anyccl tune` writes it into its
// table, whose file has the fingerprint in its name: programs read the table of the machine that
// they run on.

#include <string>

namespace anyccl::probe {

/// The facts that decide whether times that were measured on one machine hold on another.
struct Machine {
  std::string cpu;     ///< Model, as the kernel names it.
  std::string cores;   ///< Those online, as "0-7".
  std::string nodes;   ///< NUMA nodes, as "0-1".
  std::string caches;  ///< Those of the first core, with who shares them: "L1 48K 0, L2 1024K 0".
  double quota = 0;    ///< As in HostFacts.
};

/// Reads /proc and /sys; what cannot be read is "unknown".
Machine this_machine();

/// One line for people, with everything.
std::string describe(const Machine& machine);

/// 16 hexadecimal digits: differ where the description or the version of anyccl does.
std::string fingerprint(const Machine& machine);

/// The value of `key` ("model name") in /proc/cpuinfo's text, of the first core; empty: not there.
std::string cpu_fact(std::string_view cpuinfo, std::string_view key);

}  // namespace anyccl::probe
