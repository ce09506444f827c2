#include "platform/reduce/isa.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>

#include "base/error.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

extern "C" {
#if defined(__x86_64__)
extern const anyccl::KernelTable anyccl_kernels_x86_64_v2;
extern const anyccl::KernelTable anyccl_kernels_x86_64_v3;
extern const anyccl::KernelTable anyccl_kernels_x86_64_v4;
extern const anyccl::KernelTable anyccl_kernels_x86_64_v4_bf16;  // Has bf16 only.
#else
extern const anyccl::KernelTable anyccl_kernels_baseline;
#endif
}

namespace anyccl {
namespace {

#if defined(__x86_64__)

/// The feature words that tell the levels of the x86-64 psABI apart, and what goes beyond them.
struct Features {
  std::uint32_t leaf1_ecx = 0, leaf7_ebx = 0, extended_ecx = 0;
  std::uint32_t saved = 0;  ///< Register state that the operating system switches (XCR0).
  std::uint32_t leaf7_1_eax = 0;

  bool has(const Features& all) const {
    return (leaf1_ecx & all.leaf1_ecx) == all.leaf1_ecx &&
           (leaf7_ebx & all.leaf7_ebx) == all.leaf7_ebx &&
           (extended_ecx & all.extended_ecx) == all.extended_ecx &&
           (saved & all.saved) == all.saved && (leaf7_1_eax & all.leaf7_1_eax) == all.leaf7_1_eax;
  }
};

constexpr std::uint32_t bits(std::initializer_list<int> numbers) {
  std::uint32_t all = 0;
  for (const int number : numbers) all |= std::uint32_t{1} << number;
  return all;
}

// Leaf 1: SSE3, SSSE3, CX16, SSE4.1, SSE4.2, POPCNT; extended: LAHF.
constexpr Features kV2{bits({0, 9, 13, 19, 20, 23}), 0, bits({0}), 0};
// And leaf 1: FMA, MOVBE, OSXSAVE, AVX, F16C; leaf 7: BMI1, AVX2, BMI2; extended: LZCNT.
constexpr Features kV3{kV2.leaf1_ecx | bits({12, 22, 27, 28, 29}), bits({3, 5, 8}),
                       kV2.extended_ecx | bits({5}), bits({1, 2})};
// And leaf 7: AVX512F, DQ, CD, BW, VL.
constexpr Features kV4{kV3.leaf1_ecx, kV3.leaf7_ebx | bits({16, 17, 28, 30, 31}), kV3.extended_ecx,
                       kV3.saved | bits({5, 6, 7})};
// And leaf 7, second part: AVX512_BF16.
constexpr Features kV4Bf16{kV4.leaf1_ecx, kV4.leaf7_ebx, kV4.extended_ecx, kV4.saved, bits({5})};

Features features() {
  constexpr std::uint32_t kOsxsave = bits({27});
  Features found;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) != 0) found.leaf1_ecx = c;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) != 0) found.leaf7_ebx = b;
  if (__get_cpuid_count(7, 1, &a, &b, &c, &d) != 0) found.leaf7_1_eax = a;
  if (__get_cpuid(0x80000001, &a, &b, &c, &d) != 0) found.extended_ecx = c;
  if ((found.leaf1_ecx & kOsxsave) != 0) {
    std::uint32_t low = 0, high = 0;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    found.saved = low;
  }
  return found;
}

const KernelTable& v4_with_bf16() {
  static const KernelTable all = [] {
    constexpr auto kBf16 = static_cast<std::size_t>(DType::bf16);
    KernelTable table = anyccl_kernels_x86_64_v4;
    table.of[kBf16] = anyccl_kernels_x86_64_v4_bf16.of[kBf16];
    return table;
  }();
  return all;
}

std::array<Isa, 4> detect() {
  const Features cpu = features();
  return {{{"x86-64-v4-bf16", &v4_with_bf16(), cpu.has(kV4Bf16)},
           {"x86-64-v4", &anyccl_kernels_x86_64_v4, cpu.has(kV4)},
           {"x86-64-v3", &anyccl_kernels_x86_64_v3, cpu.has(kV3)},
           {"x86-64-v2", &anyccl_kernels_x86_64_v2, cpu.has(kV2)}}};
}

#else

std::array<Isa, 1> detect() {
  return {{{"baseline", &anyccl_kernels_baseline, true}}};
}

#endif

}  // namespace

std::span<const Isa> instruction_sets() {
  static const auto all = detect();
  return all;
}

Result<const KernelTable*> best_kernels() {
  const auto all = instruction_sets();
  const auto best = std::ranges::find_if(all, &Isa::supported);
  if (best == all.end())
    return error(Code::unsupported, "reductions need a CPU that has at least {}", all.back().name);
  return best->kernels;
}

}  // namespace anyccl
