#pragma once
// Collectives that add up in a wider type than that of the elements, or have results in another
// type, convert elements by the functions here. A call looks them up when it is prepared.

#include <cstddef>

#include "anyccl/types.hpp"

namespace anyccl {

/// to[i] = from[i] in another type. To a wider one it is exact; f32 and f64 are rounded to nearest
/// even, and a NaN becomes the positive quiet one.
///
/// Shapes: `count` elements in each, of any alignment, no overlap.
using ConvertFn = void (*)(void* to, const void* from, std::size_t count);

/// The function that converts `from` to `to`; null if that has no meaning, or there is none here.
ConvertFn converter(DType from, DType to);

}  // namespace anyccl
