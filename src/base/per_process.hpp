#pragma once
// per_process() makes what a process has once: pools, registries and what was found out about the
// host. Whatever it holds need not care for forks.

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/fork.hpp"

namespace anyccl {

/// The T of this process, made when it is first asked for. A forked child has one of its own: a
/// lock of its parent's may have been held at the fork. Never destroyed, as threads may outlive
/// main().
template <typename T>
T& per_process() {
  struct Owned {
    const std::uint64_t generation = fork_generation();
    T value;
  };
  static std::atomic<Owned*> shared{nullptr};
  Owned* known = shared.load(std::memory_order_acquire);
  while (known == nullptr || known->generation != fork_generation()) {
    watch_forks();
    auto made = std::make_unique<Owned>();
    // Release: whoever finds it finds it whole.
    if (shared.compare_exchange_strong(known, made.get(), std::memory_order_acq_rel))
      return made.release()->value;
  }
  return known->value;
}

}  // namespace anyccl
