#include "framework/collective/leaves.hpp"

#include <algorithm>
#include <bit>

#include "base/error.hpp"

namespace anyccl {

Result<std::uint32_t> leaves_of_rank(const CallSettings* settings, int size) {
  if (settings == nullptr || settings->leaves == 0) return std::uint32_t{1};
  const auto ranks = static_cast<std::uint32_t>(size);
  const std::uint32_t each = settings->leaves / ranks;
  if (settings->leaves % ranks == 0 && std::has_single_bit(each)) return each;
  return error(Code::invalid_argument,
               "leaves is {} and the communicator has {} ranks: each needs 1, 2, 4, 8 or "
               "another power of two of them",
               settings->leaves, size);
}

void Folding::run(std::byte* sum, const std::byte* parts, std::size_t count, std::byte* room,
                  std::vector<const void*>& sources) const {
  sources.resize(leaves);
  const std::size_t portion = widen == nullptr ? count : kRoom;
  for (std::size_t first = 0; first < count; first += portion) {
    const std::size_t some = std::min(portion, count - first);
    for (std::size_t k = 0; k < leaves; ++k) {
      const std::byte* const part = parts + (k * count + first) * given_bytes;
      std::byte* const wide = room + k * kRoom * bytes;
      if (widen != nullptr) widen(wide, part, some);
      sources[k] = widen != nullptr ? wide : part;
    }
    kernel(sum + first * bytes, nullptr, sources.data(), leaves, some);
  }
}

}  // namespace anyccl
