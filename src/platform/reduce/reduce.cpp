#include "platform/reduce/reduce.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <cstring>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "base/types.hpp"
#include "platform/reduce/copy.hpp"
#include "platform/reduce/isa.hpp"
#include "platform/reduce/kernels/copy_distance.hpp"

namespace anyccl {
namespace {

/// Names those of the library, as docs/generated/support.md does.
std::string operators_of(const TypeKernels& type) {
  constexpr auto kAvg = static_cast<std::size_t>(ReduceOp::avg);  // a sum and a division
  std::string names;
  for (std::size_t op = 0; op < kReduceOps; ++op)
    if (op == kAvg ? type.divide != nullptr : type.reduce[op] != nullptr)
      names.append(names.empty() ? "" : ", ").append(name_of(static_cast<ReduceOp>(op)));
  return names;
}

void c_copy(void* dst, const void* src, std::size_t bytes) {
  std::memcpy(dst, src, bytes);
}

/// The copies of this CPU: `far` between caches, `close` where the C library's might use rep movsb
/// and dst is a little ahead of src within a page, which makes that very slow.
struct Copies {
  CopyFn far = c_copy, close = c_copy;
  std::size_t far_from = kFarCopyFrom;
};

/// Copies and reductions that fetch ahead are faster there: on Cascade Lake, writing by the C
/// library's copy (rep movsb from 8 KiB on) takes x1.4 to x1.6 as long (docs/adr/0025); reductions
/// were measured on Granite Rapids (docs/adr/0073). Other CPUs of Intel are taken to be alike.
bool is_intel() {
#if defined(__x86_64__)
  return __builtin_cpu_is("intel") != 0;
#else
  return false;
#endif
}

/// Whether the C library's copy is rep movsb from 2112 bytes on, as the CPU calls it fast for short
/// copies: between caches it is not.
bool has_short_rep_movsb() {
#if defined(__x86_64__)
  constexpr unsigned kFeatures = 7, kFsrm = 1U << 4;
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(kFeatures, 0, &a, &b, &c, &d) != 0 && (d & kFsrm) != 0;
#else
  return false;
#endif
}

Copies best_copies() {
  Copies best;
#if defined(__x86_64__)
  if (const auto all = best_kernels(); all.ok()) {
    best.close = (*all)->copy;
    if (is_intel()) best.far = (*all)->copy;
    if (is_intel() && has_short_rep_movsb()) best.far_from = kLongCopyFrom;
  }
#endif
  return best;
}

template <std::size_t Type>
void truth(void* dst, const void* src, std::size_t count, std::uint32_t) {
  const void* const both[] = {src, src};
  const ReduceFn land =
      (*best_kernels())->of[Type].reduce[static_cast<std::size_t>(ReduceOp::land)];
  land(dst, nullptr, both, 2, count);
}

template <std::size_t... Types>
DivideFn truth_of(std::size_t type, std::index_sequence<Types...>) {
  constexpr DivideFn kAll[] = {truth<Types>...};
  return kAll[type];
}

}  // namespace

const bool kFetchesAhead = is_intel();

void long_copy(void* dst, const void* src, std::size_t bytes) {
  static const Copies best = best_copies();
  if (is_slow_for_rep_movsb(dst, src)) return best.close(dst, src, bytes);
  if (bytes >= best.far_from && bytes < kFarCopyTo) return best.far(dst, src, bytes);
  std::memcpy(dst, src, bytes);
}

Result<ReduceFn> reduce_kernel(DType dtype, ReduceOp op) {
  ANYCCL_TRY(const KernelTable* const all, best_kernels());
  const auto type = static_cast<std::size_t>(dtype), which = static_cast<std::size_t>(op);
  if (type >= kDTypes || which >= kReduceOps)
    return error(Code::unsupported, "there is no type {} or operator {}", type, which);
  const TypeKernels& of_type = all->of[type];
  if (of_type.reduce[which] != nullptr) return of_type.reduce[which];
  return error(Code::unsupported, "{} of {} is not supported; of {} there are {}", name_of(op),
               name_of(dtype), name_of(dtype), operators_of(of_type));
}

Result<DivideFn> divide_kernel(DType dtype) {
  ANYCCL_TRY(const KernelTable* const all, best_kernels());
  const auto type = static_cast<std::size_t>(dtype);
  if (type < kDTypes && all->of[type].divide != nullptr) return all->of[type].divide;
  return error(Code::unsupported, "avg of {} is not supported: it cannot be divided",
               name_of(dtype));
}

Result<DivideFn> truth_kernel(DType dtype) {
  ANYCCL_CHECK(reduce_kernel(dtype, ReduceOp::land).status());
  return truth_of(static_cast<std::size_t>(dtype), std::make_index_sequence<kDTypes>());
}

}  // namespace anyccl
