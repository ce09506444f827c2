#pragma once
// Operators that a program has created are kept here, in a table for each communicator, and applied
// to elements.

#include <array>
#include <memory>
#include <mutex>
#include <vector>

#include "anyccl/anyccl.h"
#include "anyccl/status.hpp"
#include "anyccl/types.hpp"
#include "platform/reduce/kernels.hpp"

namespace anyccl {

/// An operator that the user has created.
struct Operator {
  anycclReduceFunction_t function = nullptr;  ///< If it is null, the operator is a sum of products.
  void* data = nullptr;

  // A sum of products has these:
  DType dtype = DType::f32;
  const void* scalar = nullptr;  ///< What to multiply by, read when an operation starts; or,
  std::array<std::byte, 16> value = {};  ///< if that is null, this.

  const void* factor() const { return scalar != nullptr ? scalar : value.data(); }
};

/// What a call keeps that runs later: until it is given back, the number means this operator.
using HeldOperator = std::shared_ptr<const std::shared_ptr<const Operator>>;

/// The operators of one communicator. A program has a handle of each, which is never given again;
/// calls have its number, a byte, which is given again when the operator was removed and no call
/// holds it.
///
/// Threads: any. Another one may be in a function of the program that reduces.
class Operators {
 public:
  /// What stands for a handle that is not known; no operator has it.
  static constexpr ReduceOp kNone{255};
  /// Whether the program has created it, or there is none.
  static bool is_created(ReduceOp op) { return static_cast<std::uint32_t>(op) >= kFirst; }

  /// Returns its handle. Errors: unsupported when there are too many at a time.
  Result<ReduceOp> add(const Operator& op);
  /// Adds one with a handle that the operators of another communicator have given.
  void add_as(ReduceOp handle, const Operator& op);
  void copy(const Operators& from);
  /// Errors: invalid_argument if there is none with that handle.
  Status remove(ReduceOp handle);
  /// Returns kNone if there is none with that handle.
  ReduceOp number_of(ReduceOp handle) const;

  // These take numbers, also of what was removed while calls hold it, and return null if there is
  // none.
  std::shared_ptr<const Operator> find(ReduceOp number) const;
  HeldOperator hold(ReduceOp number) const;

 private:
  static constexpr std::uint32_t kFirst = 128, kMost = 127;
  struct Place {
    HeldOperator op;         ///< It is null until there was one.
    std::uint32_t turn = 0;  ///< How many had the number.
    bool removed = false;

    bool is_free() const { return op == nullptr || (removed && op.use_count() == 1); }
  };
  /// Puts it at the number that is in `handle`, in place of what is there. With the lock.
  void put(ReduceOp handle, const Operator& op);
  const Place* place_of(ReduceOp handle) const;

  mutable std::mutex mutex_;
  std::vector<Place> all_;  // number kFirst + i
};

/// to[i] = from[i] * factor for `count` elements. `times`: the product kernel of the type.
void multiply(std::byte* to, const std::byte* from, std::size_t count, std::size_t element,
              const void* factor, ReduceFn times);

/// dst[i] = op over sources[k][i], folded by the aligned tree; `second` gets the same, if it is not
/// null. `dst` may be one of the sources.
void apply(const Operator& op, DType dtype, std::size_t element, void* dst, void* second,
           const void* const* sources, std::size_t sources_count, std::size_t count);

}  // namespace anyccl
