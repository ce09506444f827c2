#pragma once
// What a call does around its plan: with the input before the plan reads it, and with the result
// when the plan is done.

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/round_up.hpp"
#include "framework/call/call.hpp"
#include "framework/call/operators.hpp"
#include "framework/collective/leaves.hpp"
#include "platform/reduce/reduce.hpp"

namespace anyccl {

/// Places in the scratch memory of a call, one after the other, each on a cache line.
class ScratchLayout {
 public:
  /// Returns where the next `bytes` lie.
  std::size_t add(std::size_t bytes) {
    const std::size_t at = round_up(bytes_, 64);
    if (bytes > 0) bytes_ = at + bytes;
    return at;
  }
  /// Bytes of all of them.
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_ = 0;
};

/// What happens to the input before the plan reads it: leaves are folded, or elements multiplied
/// or converted; or nothing.
struct InputStage {
  Folding folding;              ///< It adds up several leaves, if there are any.
  ReduceFn multiply = nullptr;  ///< It multiplies by the factor of the operator, or is null.
  ConvertFn convert = nullptr;  ///< It makes elements of the type of the sum, or is null.
  /// Where multiplied blocks of a v-form begin, in elements, and the last one ends: side by side,
  /// wherever they lay. Empty: the input is one vector.
  std::vector<std::size_t> begins;
  std::size_t bytes = 0;    ///< Those of its result.
  std::size_t element = 1;  ///< Bytes of one, there.
  std::size_t at = 0;       ///< Where its result lies in the scratch memory,
  std::size_t room_at = 0;  ///< and the room that folding takes.

  bool folds() const { return folding.leaves > 1; }
  bool is_empty() const { return !folds() && multiply == nullptr && convert == nullptr; }
  /// Plans its places for a plan that reads `input_bytes`.
  void plan(ScratchLayout& layout, std::size_t input_bytes);
  /// Makes the input of the plan, and returns it; not if the stage is empty. `op`: the operator
  /// that multiplies. `addresses`: room, whose contents do not matter.
  const std::byte* run(const Call& call, const Operator* op, std::byte* scratch,
                       std::vector<const void*>& addresses) const;
};

/// What happens to the result when no peer reads it any more: it is divided, or converted, or both,
/// or nothing.
struct ResultStage {
  DivideFn divide = nullptr;    ///< It makes averages or truth values of the results, or is null.
  std::uint32_t divisor = 1;    ///< What averages are divided by.
  ConvertFn convert = nullptr;  ///< It makes elements of the type of the output, or is null.
  std::size_t at = 0;           ///< Where the plan writes then, in the scratch memory.

  bool is_empty() const { return divide == nullptr && convert == nullptr; }
  /// Plans its place for a plan that writes `output_bytes`.
  void plan(ScratchLayout& layout, std::size_t output_bytes) {
    if (convert != nullptr) at = layout.add(output_bytes);
  }
  /// Where the plan writes what becomes the program's `output`.
  std::byte* written(std::byte* output, std::byte* scratch) const {
    return convert == nullptr ? output : scratch + at;
  }
  /// Makes `output` of `count` elements that were `written`.
  void run(std::byte* output, std::byte* written, std::size_t count) const {
    if (divide != nullptr) divide(written, written, count, divisor);
    if (convert != nullptr) convert(output, written, count);
  }
};

}  // namespace anyccl
