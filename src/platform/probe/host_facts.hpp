#pragma once
// The facts about the host say on what machine this process runs, and on how many of its cores. A
// rank reads them for its hello, and the command line for what it shows and writes.

#include <cstdint>
#include <string>

#include "platform/probe/cpus.hpp"

namespace anyccl::probe {

/// Where this process runs.
struct HostFacts {
  std::string hostname;
  std::string boot_id;                  ///< Differs between machines and boots; empty: unknown.
  std::uint64_t network_namespace = 0;  ///< Differs between those of one boot; 0: unknown.
  CpuSet cpus;                          ///< Those of the process.
  int cores = 1;     ///< Threads that can run at once: by affinity and quota, at least 1.
  double quota = 0;  ///< Cores that the cgroups allow on average; infinity: no limit.
};

/// Reads /proc and /sys; the quota is up to a second old. Facts that cannot be read have the value
/// that says so. Any thread; affinity is that of all threads of the process together.
HostFacts host_facts();

/// `affinity`: CPUs that threads may run on. They are limited by `quota`, rounded down (a second
/// spinning thread under a quota of 1.5 would stop both for part of each period), at least 1.
int usable_cores(int affinity, double quota);

}  // namespace anyccl::probe
