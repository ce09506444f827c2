// The floating-point mode of the caller (MXCSR) must not reach the results.

#include <gtest/gtest.h>

#include "reference.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

namespace anyccl::test {
namespace {

constexpr unsigned kDefaultMode = 0x1f80, kFlags = 0x3f;
constexpr unsigned kFlushToZero = 0x8000, kDenormalsAreZero = 0x40, kTowardsZero = 0x6000;
constexpr unsigned kUnmasked = 0x1f80;  // To be cleared: every exception traps.
constexpr unsigned kModes[] = {kDefaultMode | kFlushToZero, kDefaultMode | kDenormalsAreZero,
                               kDefaultMode | kTowardsZero,
                               (kDefaultMode | kFlushToZero | kDenormalsAreZero) & ~kUnmasked};

/// Runs `kernel` over inputs rich in denormals in `mode`; `after` is the mode it left.
std::vector<std::uint32_t> run_in(unsigned mode, const Kernel& kernel, unsigned& after) {
  std::mt19937_64 random(1);
  std::vector<std::uint32_t> a(1001), b(a.size()), c(a.size()), result(a.size());
  for (auto* input : {&a, &b, &c})
    for (std::uint32_t& x : *input) {
      const auto bits = static_cast<std::uint32_t>(random());
      x = bits & (bits % 4 == 0 ? 0xbfffffff : 0x80ffffff);
    }
  const void* const sources[] = {a.data(), b.data(), c.data()};
  const std::size_t count = a.size() * 4 / bytes_of(kernel.dtype);
  const unsigned before = _mm_getcsr();
  _mm_setcsr(mode);
  kernel.run(result.data(), nullptr, sources, 3, count);
  after = _mm_getcsr();
  _mm_setcsr(before);
  return result;
}

TEST(FloatMode, of_the_caller_changes_no_bit_and_is_kept) {
  for (const Isa& isa : supported_isas()) {
    for (const Kernel& kernel : std::span(isa.kernels->first, isa.kernels->count)) {
      if (kernel.dtype == DType::i64) continue;
      unsigned after = 0;
      const auto expected = run_in(kDefaultMode, kernel, after);
      for (const unsigned mode : kModes) {
        EXPECT_EQ(run_in(mode, kernel, after), expected) << isa.name << std::hex << " " << mode;
        EXPECT_EQ(after & ~kFlags, mode) << isa.name;
      }
    }
  }
}

// Guards the test above: were the mode not replaced, it would show.
TEST(FloatMode, would_change_these_sums) {
  volatile float denormal = f32(0x00400000);
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | kFlushToZero | kDenormalsAreZero);
  volatile float sum = denormal + denormal;
  _mm_setcsr(before);
  EXPECT_EQ(sum, 0.0F);
}

}  // namespace
}  // namespace anyccl::test
#endif
