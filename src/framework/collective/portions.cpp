#include "framework/collective/portions.hpp"

#include <algorithm>

namespace anyccl {

void Portions::run(std::byte* dst, const void* const* sources, std::uint32_t number,
                   std::size_t count, std::byte* room, const void** portions) const {
  const std::size_t wide = kElements * element * growth;
  for (std::size_t first = 0; first < count; first += kElements) {
    const std::size_t some = std::min(kElements, count - first);
    for (std::uint32_t k = 0; k < number; ++k) {
      const auto* const given = static_cast<const std::byte*>(sources[k]) + first * element;
      if (widen != nullptr) widen(room + k * wide, given, some);
      portions[k] = widen != nullptr ? room + k * wide : given;
    }
    std::byte* const result = dst + first * element * stored_growth();
    std::byte* const sum = narrow == nullptr ? result : room + number * wide;
    kernel(sum, nullptr, portions, number, some);
    if (divide != nullptr) divide(sum, sum, some, divisor);
    if (narrow != nullptr) narrow(result, sum, some);
  }
}

}  // namespace anyccl
