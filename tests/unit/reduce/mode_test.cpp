// The floating-point mode of the caller (MXCSR, FPCR) must not reach the results.

#include <gtest/gtest.h>

#include <limits>

#include "reference.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#if defined(__x86_64__) || defined(__aarch64__)
namespace anyccl::test {
namespace {

#if defined(__x86_64__)
using Mode = unsigned;
constexpr unsigned kDefaultMode = 0x1f80, kFlags = 0x3f;
constexpr unsigned kFlushToZero = 0x8000, kDenormalsAreZero = 0x40, kTowardsZero = 0x6000;
constexpr unsigned kUnmasked = 0x1f80;  // To be cleared: every exception traps.
constexpr unsigned kModes[] = {kDefaultMode | kFlushToZero, kDefaultMode | kDenormalsAreZero,
                               kDefaultMode | kTowardsZero,
                               (kDefaultMode | kFlushToZero | kDenormalsAreZero) & ~kUnmasked};
constexpr Mode kFlushing = kModes[0] | kModes[1];
Mode mode_now() {
  return _mm_getcsr();
}
void set_mode(Mode mode) {
  _mm_setcsr(mode);
}
#else
using Mode = std::uint64_t;
constexpr Mode kDefaultMode = 0, kFlags = 0;
constexpr Mode kFlushing = 1 << 24, kTowardsZero = 3 << 22, kOtherHalves = 1 << 26;
constexpr Mode kModes[] = {kFlushing, kTowardsZero, kOtherHalves};
Mode mode_now() {
  Mode mode = 0;
  asm volatile("mrs %0, fpcr" : "=r"(mode) : : "memory");
  return mode;
}
void set_mode(Mode mode) {
  asm volatile("msr fpcr, %0" : : "r"(mode) : "memory");
}
#endif

/// Floating-point elements of which many are denormal.
Memory inputs(DType type, std::mt19937_64& random) {
  Memory elements = random_elements(type, 500, random);
  const std::size_t part = is_complex(type) ? bytes_of(type) / 2 : bytes_of(type);
  const Format f = format_of(type);
  for (std::size_t at = 0; at < elements.size(); at += 2 * part) {
    const Bits denormal = random() & (f.sign() | ((Bits{1} << f.mantissa) - 1));
    std::memcpy(elements.data() + at, &denormal, part);
  }
  return elements;
}

/// Results of all kernels for `type` in `mode`, which they must leave as it is.
std::vector<Memory> run_in(Mode mode, const Isa& isa, DType type) {
  std::mt19937_64 random(1);
  const Memory a = inputs(type, random), b = inputs(type, random), c = inputs(type, random);
  const void* const sources[] = {a.data(), b.data(), c.data()};
  const std::size_t count = a.size() / bytes_of(type);
  std::vector<Memory> results;
  const auto record = [&](const auto& run) {
    Memory result(a.size());
    const Mode before = mode_now();
    set_mode(mode);
    run(result.data());
    const Mode after = mode_now();
    set_mode(before);
    EXPECT_EQ(after & ~kFlags, mode) << isa.name;
    results.push_back(result);
  };
  for (const ReduceOp op : operators(isa, type))
    record([&](void* dst) { kernel(isa, type, op)(dst, nullptr, sources, 3, count); });
  record([&](void* dst) { kernels(isa, type).divide(dst, a.data(), count, 3); });
  return results;
}

TEST(FloatMode, of_the_caller_changes_no_bit_and_is_kept) {
  for (const Isa& isa : supported_isas()) {
    for (const DType type : all_types()) {
      if (!is_float(type) && !is_complex(type)) continue;
      const auto expected = run_in(kDefaultMode, isa, type);
      for (const Mode mode : kModes)
        EXPECT_EQ(run_in(mode, isa, type), expected)
            << isa.name << " " << name_of(type) << std::hex << " " << mode;
    }
  }
}

// Guards the test above: were the mode not replaced, it would show.
TEST(FloatMode, would_change_these_sums) {
  volatile float denormal = std::numeric_limits<float>::denorm_min();
  const Mode before = mode_now();
  set_mode(before | kFlushing);
  volatile float sum = denormal + denormal;
  set_mode(before);
  EXPECT_EQ(sum, 0.0F);
}

}  // namespace
}  // namespace anyccl::test
#endif
