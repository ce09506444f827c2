#pragma once
// Steps that combine with more than one kernel: elements of a type in a wider one, and averages.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "platform/reduce/convert.hpp"
#include "platform/reduce/kernels.hpp"

namespace anyccl {

/// How a step combines a portion at a time, which stays in a core's cache.
struct Portions {
  static constexpr std::size_t kElements = 1024;
  ReduceFn kernel = nullptr;   ///< It combines a portion, or is null: a step is one kernel.
  ConvertFn widen = nullptr;   ///< It makes elements of sources `growth` times as long; or null.
  ConvertFn narrow = nullptr;  ///< It makes those of the result as short again; null: they stay.
  DivideFn divide = nullptr;   ///< It makes averages of the results; or null.
  std::uint32_t divisor = 1;
  std::size_t element = 1, growth = 1;  ///< `element`: bytes of one of a source.
  std::size_t at = 0;                   ///< Where its room lies in the scratch memory.

  std::size_t stored_growth() const { return narrow == nullptr ? growth : 1; }
  /// Bytes of the memory that it takes for so many sources.
  std::size_t room(std::size_t sources) const {
    return widen == nullptr ? 0 : (sources + 1) * kElements * element * growth;
  }
  /// Combines `count` elements of each of `number` sources. `dst` may be one of them; `room`: see
  /// room(); `portions`: for `number` addresses.
  void run(std::byte* dst, const void* const* sources, std::uint32_t number, std::size_t count,
           std::byte* room, const void** portions) const;
};

}  // namespace anyccl
