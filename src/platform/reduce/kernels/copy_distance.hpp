#pragma once
// Addresses between which rep movsb is slow. Without inline functions: see kernels.cpp.

#include <cstdint>

namespace anyccl {
namespace {

/// `dst` is less than a line ahead of `src`, but for whole pages: then rep movsb takes up to 25
/// times as long on AMD Zen 3 and 4 (docs/adr/0068).
[[gnu::always_inline]] inline bool is_slow_for_rep_movsb(const void* dst, const void* src) {
  constexpr std::uintptr_t kPage = 4096, kLine = 64;
  const auto ahead =
      (reinterpret_cast<std::uintptr_t>(dst) - reinterpret_cast<std::uintptr_t>(src)) % kPage;
  return ahead != 0 && ahead < kLine;
}

}  // namespace
}  // namespace anyccl
