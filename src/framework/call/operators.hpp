#pragma once

#include <array>
#include <memory>
#include <vector>

#include "anyccl/anyccl.h"
#include "anyccl/status.hpp"
#include "anyccl/types.hpp"
#include "platform/reduce/kernels.hpp"

namespace anyccl {

/// An operator that the user has created.
struct Operator {
  anycclReduceFunction_t function = nullptr;  ///< Null: the sum of what is multiplied first.
  void* data = nullptr;

  // Of a sum of products:
  DType dtype = DType::f32;
  const void* scalar = nullptr;  ///< What to multiply by, read when an operation starts; or,
  std::array<std::byte, 16> value = {};  ///< if that is null, this.

  const void* factor() const { return scalar != nullptr ? scalar : value.data(); }
};

/// The operators of one communicator. One thread at a time.
class Operators {
 public:
  /// Errors: unsupported when there are too many at a time.
  Result<ReduceOp> add(const Operator& op);
  /// Errors: invalid_argument if there is none of that name.
  Status remove(ReduceOp name);
  /// Null if there is none of that name.
  const std::shared_ptr<const Operator>& find(ReduceOp name) const;

 private:
  static constexpr std::size_t kFirst = 128, kMost = 127;  // 255 is no operator's
  std::vector<std::shared_ptr<const Operator>> all_;       // number kFirst + i; null: free
};

/// to[i] = from[i] * factor for `count` elements. `times`: the product kernel of the type.
void multiply(std::byte* to, const std::byte* from, std::size_t count, std::size_t element,
              const void* factor, ReduceFn times);

/// dst[i] = op over sources[k][i], folded by the aligned tree; `second` gets the same, if it is not null.
/// `dst` may be one of the sources.
void apply(const Operator& op, DType dtype, std::size_t element, void* dst, void* second,
           const void* const* sources, std::size_t sources_count, std::size_t count);

}  // namespace anyccl
