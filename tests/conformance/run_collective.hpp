#pragma once
// One collective of one size with real bytes, in all its variants, and what must come out of it.

#include <vector>

#include "algorithm/catalog/algorithm.hpp"
#include "support/effort.hpp"
#include "support/ranks.hpp"

namespace anyccl::test {

// Of floats: more than a tile of as many ranks as there are.
inline constexpr std::size_t kSeveralTiles = kSanitized ? 170001 : 300001;

// 0 and 1 elements, around a line (56 bytes), around pages, and more than a tile.
inline const std::vector<std::size_t> kCounts =
    kSanitized ? std::vector<std::size_t>{0, 1, 15, 257, 4099, kSeveralTiles}
               : std::vector<std::size_t>{0, 1, 3, 13, 14, 15, 257, 4099, 20000, kSeveralTiles};

/// Element i of what `rank` contributes.
inline long input(int rank, std::size_t i) {
  return static_cast<long>((i * 7 + static_cast<std::size_t>(rank) * 3) % 11);
}

/// Whether the buffers of this thread's rank lie in memory of anycclMemAlloc.
extern thread_local bool in_arena;

/// All variants (roots, in place, types) of `collective` with `count` elements. By every rank.
void run_once(Communicator& comm, Collective collective, std::size_t count);

}  // namespace anyccl::test
