#pragma once

#include <span>
#include <string_view>

#include "platform/reduce/kernels.hpp"

namespace anyccl {

/// An instruction set that the kernels were compiled for.
struct Isa {
  std::string_view name;
  const KernelTable* kernels;
  bool supported;  ///< By this CPU and this operating system.
};

/// All of them, best first. Asks the CPU once per process.
std::span<const Isa> instruction_sets();

}  // namespace anyccl
