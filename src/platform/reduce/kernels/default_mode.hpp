#pragma once
// The floating-point mode of what is compiled once for each instruction set.

#include <cstdint>

namespace anyccl {
namespace {

/// Runs `kernel` in the default floating-point mode. The caller may flush denormals (-ffast-math
/// anywhere in the process sets that) or round elsewhere, and ranks must not differ for it.
template <auto kernel, typename... Args>
void in_default_mode(Args... args) {
#if defined(__x86_64__)
  constexpr unsigned kDefault = 0x1f80, kFlags = 0x3f;
  const unsigned mode = __builtin_ia32_stmxcsr();
  if ((mode & ~kFlags) != kDefault) [[unlikely]] {
    __builtin_ia32_ldmxcsr(kDefault);
    kernel(args...);
    return __builtin_ia32_ldmxcsr(mode);
  }
#elif defined(__aarch64__)
  std::uint64_t mode = 0;
  asm volatile("mrs %0, fpcr" : "=r"(mode));
  if (mode != 0) [[unlikely]] {
    asm volatile("msr fpcr, xzr" : : : "memory");
    kernel(args...);
    asm volatile("msr fpcr, %0" : : "r"(mode) : "memory");
    return;
  }
#endif
  kernel(args...);
}

}  // namespace
}  // namespace anyccl
