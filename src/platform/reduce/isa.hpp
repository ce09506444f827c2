#pragma once
// The kernels are compiled for several instruction sets. The functions here tell which of these
// this CPU has. Whatever calls kernels takes those of the best one.

#include <span>
#include <string_view>

#include "anyccl/status.hpp"
#include "platform/reduce/kernels.hpp"

namespace anyccl {

/// An instruction set that the kernels were compiled for.
struct Isa {
  std::string_view name;
  const KernelTable* kernels;
  bool supported;  ///< By this CPU and this operating system.
};

/// All for which there are kernels, best first, also those that this CPU lacks. Asks the CPU once
/// per process.
std::span<const Isa> instruction_sets();

/// Those of the best one that this CPU has.
///
/// Errors: unsupported (a CPU older than x86-64-v2).
Result<const KernelTable*> best_kernels();

}  // namespace anyccl
