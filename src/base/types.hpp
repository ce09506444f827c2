#pragma once
// For the types of anyccl/types.hpp: their names in messages, and their sizes.

#include <cstddef>
#include <string_view>

#include "anyccl/types.hpp"

namespace anyccl {

/// How call records name the operators that programs create: values that exist() denies.
inline constexpr ReduceOp kPreMulSum{11}, kUserOp{12};

/// Bytes of an element; 0 if there is no such type.
std::size_t bytes_of(DType type);
/// "f32"; "?" if there is no such type.
std::string_view name_of(DType type);
/// "sum"; "?" if there is no such operator.
std::string_view name_of(ReduceOp op);
bool exists(ReduceOp op);

}  // namespace anyccl
