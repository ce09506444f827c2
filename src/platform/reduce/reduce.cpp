#include "platform/reduce/reduce.hpp"

#include <algorithm>
#include <span>
#include <string>

#include "base/error.hpp"
#include "base/types.hpp"
#include "platform/reduce/isa.hpp"

namespace anyccl {
Result<ReduceFn> reduce_kernel(DType dtype, ReduceOp op) {
  const auto all = instruction_sets();
  const auto best = std::ranges::find_if(all, &Isa::supported);
  if (best == all.end())
    return error(Code::unsupported, "reductions need a CPU that has at least {}", all.back().name);
  const std::span kernels(best->kernels->first, best->kernels->count);
  const auto found = std::ranges::find_if(
      kernels, [&](const Kernel& kernel) { return kernel.dtype == dtype && kernel.op == op; });
  if (found != kernels.end()) return found->run;

  std::string available;
  for (const Kernel& kernel : kernels)
    available += fmt::format("{}{} {}", available.empty() ? "" : ", ", name_of(kernel.dtype),
                             name_of(kernel.op));
  return error(Code::unsupported, "no reduction for {} {}; there are: {}", name_of(dtype),
               name_of(op), available);
}

}  // namespace anyccl
