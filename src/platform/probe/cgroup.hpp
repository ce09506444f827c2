#pragma once
// The functions here read what the cgroups of a process, of version 1 or 2, allow it. host_facts()
// asks for cores, and the shm transport for memory before it makes more.

#include <string_view>

namespace anyccl::probe {

/// Cores that the cgroups of a process allow it on average: the least of cpu.max (version 2) and
/// cpu.cfs_quota_us / cpu.cfs_period_us (version 1) in its own cgroup and those above it, as far up
/// as they are mounted. Infinity: no limit, or none that can be read.
///
/// `membership` is the text of /proc/<pid>/cgroup, `mounts` that of /proc/<pid>/mountinfo.
double cgroup_quota(std::string_view membership, std::string_view mounts);

/// Bytes that the cgroups of a process let it and its neighbours take: the least of memory.max -
/// memory.current (version 2) and memory.limit_in_bytes - memory.usage_in_bytes (version 1), each
/// plus the pages of files, which the system can have back. Infinity as above. Swap is not looked
/// at.
double cgroup_memory_left(std::string_view membership, std::string_view mounts);
/// cgroup_memory_left() for this process, now.
double memory_left();

}  // namespace anyccl::probe
