#pragma once
// For the types of anyccl/types.hpp: their names in messages, and their sizes.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "anyccl/types.hpp"

namespace anyccl {

/// How call records name the operators that programs create: values that exist() denies.
inline constexpr ReduceOp kPreMulSum{11}, kUserOp{12};

/// Bytes of an element; 0 if there is no such type.
std::size_t bytes_of(DType type);
/// "sum"; "?" if there is no such operator.
std::string_view name_of(ReduceOp op);
bool exists(ReduceOp op);

/// An operator as calls have it, in a byte: one of the library, or the number of one that the
/// program has created (see Operators).
class OperatorNumber {
 public:
  constexpr OperatorNumber(ReduceOp op) : value_(static_cast<std::uint8_t>(op)) {}
  constexpr operator ReduceOp() const { return static_cast<ReduceOp>(value_); }
  template <std::integral Number>
  explicit constexpr operator Number() const {
    return static_cast<Number>(value_);
  }

 private:
  std::uint8_t value_;
};

}  // namespace anyccl
