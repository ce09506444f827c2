#pragma once

#include <cstddef>

#include "anyccl/types.hpp"

namespace anyccl {

/// to[i] = from[i] in another type. To a wider one it is exact; f32 and f64 are rounded to nearest even, and a
/// NaN becomes the positive quiet one.
///
/// Shapes: `count` elements in each, of any alignment, no overlap.
using ConvertFn = void (*)(void* to, const void* from, std::size_t count);

/// Null: the conversion has no meaning, or this library has none.
ConvertFn converter(DType from, DType to);

}  // namespace anyccl
