#pragma once
// Sums of several parts of each rank, the leaves, whose bits do not depend on the number of ranks:
// docs/numbers/reproducibility.md; docs/adr/0062.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "anyccl/status.hpp"
#include "framework/tuning/plan_settings.hpp"
#include "platform/reduce/convert.hpp"
#include "platform/reduce/kernels.hpp"

namespace anyccl {

/// How many leaves each of `size` ranks has, as the call's configuration says; 1 if it says
/// nothing. Errors: invalid_argument, if that is no power of two: then a rank's leaves are no node
/// of the tree.
Result<std::uint32_t> leaves_of_rank(const CallSettings* settings, int size);

/// How a rank adds up its leaves before anything else.
struct Folding {
  std::uint32_t leaves = 1;
  ReduceFn kernel = nullptr;
  ConvertFn widen = nullptr;  ///< Converts each element before it is added up; null: nothing does.
  std::size_t given_bytes = 1, bytes = 1;     ///< An element's, in a leaf and in the sum.
  static constexpr std::size_t kRoom = 1024;  ///< Elements of each leaf that are widened at a time.

  /// Bytes of the memory that it takes.
  std::size_t room() const { return widen == nullptr ? 0 : leaves * kRoom * bytes; }
  /// sum[i] = parts[i] op parts[count + i] op ..., by the aligned tree, i < count, for the operator
  /// of `kernel`. `room`: see room(); `sources`: for addresses, its contents do not matter.
  void run(std::byte* sum, const std::byte* parts, std::size_t count, std::byte* room,
           std::vector<const void*>& sources) const;
};

}  // namespace anyccl
