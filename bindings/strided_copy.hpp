#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace anyccl::bindings {

/// Copies an array with the elements at any distances into memory in C order. `item`: bytes of an
/// element. `shape` and `strides`: the elements of each dimension, and the bytes from one to the
/// next. `to` gets the product of `shape` elements, and does not overlap `from`.
void copy_strided(const std::byte* from, std::span<const std::int64_t> shape,
                  std::span<const std::int64_t> strides, std::size_t item, std::byte* to);

}  // namespace anyccl::bindings
