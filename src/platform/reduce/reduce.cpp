#include "platform/reduce/reduce.hpp"

#include <algorithm>
#include <span>
#include <string_view>

#include "base/error.hpp"
#include "platform/reduce/isa.hpp"

namespace anyccl {
namespace {

std::string_view name(DType dtype) {
  constexpr std::string_view kNames[] = {"i8",  "u8",  "i32", "u32",  "i64",    "u64",
                                         "f16", "f32", "f64", "bf16", "f8e4m3", "f8e5m2"};
  const auto i = static_cast<std::size_t>(dtype);
  return i < std::size(kNames) ? kNames[i] : "unknown type";
}

std::string_view name(ReduceOp op) {
  constexpr std::string_view kNames[] = {"sum", "prod", "max", "min", "avg"};
  const auto i = static_cast<std::size_t>(op);
  return i < std::size(kNames) ? kNames[i] : "unknown operation";
}

}  // namespace

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
    available +=
        fmt::format("{}{} {}", available.empty() ? "" : ", ", name(kernel.dtype), name(kernel.op));
  return error(Code::unsupported, "no reduction for {} {}; there are: {}", name(dtype), name(op),
               available);
}

}  // namespace anyccl
