// Files of the kernel about this host.

#include "input.hpp"
#include "platform/probe/cgroup.hpp"
#include "platform/probe/contention.hpp"
#include "platform/probe/cpus.hpp"
#include "platform/probe/machine.hpp"

namespace anyccl::fuzz {

void run(Input input) {
  const std::string membership = input.line(), mounts = input.line(), text = input.text();
  static_cast<void>(probe::cgroup_quota(membership, mounts));
  static_cast<void>(probe::cgroup_quota(text, text));
  static_cast<void>(probe::cpus_in(membership));
  static_cast<void>(probe::cpu_fact(text, "model"));
  static_cast<void>(probe::count_runnable(mounts));
}

}  // namespace anyccl::fuzz
