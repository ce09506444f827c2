// Which of the compilations of row_sums.cpp this CPU gets.

#include <algorithm>

#include "platform/reduce/isa.hpp"
#include "platform/reduce/row_sums.hpp"

extern "C" {
#if defined(__x86_64__)
extern const anyccl::RowSums anyccl_row_sums_x86_64_v2;
extern const anyccl::RowSums anyccl_row_sums_x86_64_v3;
extern const anyccl::RowSums anyccl_row_sums_x86_64_v4;
#else
extern const anyccl::RowSums anyccl_row_sums_baseline;
#endif
}

namespace anyccl {

const RowSums& row_sums() {
#if defined(__x86_64__)
  static const RowSums* const best = [] {
    const auto all = instruction_sets();
    const auto isa = std::ranges::find_if(all, &Isa::supported);
    if (isa != all.end() && isa->name.starts_with("x86-64-v4")) return &anyccl_row_sums_x86_64_v4;
    if (isa != all.end() && isa->name == "x86-64-v3") return &anyccl_row_sums_x86_64_v3;
    return &anyccl_row_sums_x86_64_v2;
  }();
  return *best;
#else
  return anyccl_row_sums_baseline;
#endif
}

}  // namespace anyccl
