#pragma once
// Arguments of collectives and messages are checked here before anything uses them. PlanCache asks.

#include "framework/call/call.hpp"
#include "framework/call/operators.hpp"

namespace anyccl {

/// Bytes of the buffers of a call at one rank; 0 if it is not used. Of v-forms as if each block had
/// `count` elements.
struct BufferBytes {
  std::size_t input, output;
};
BufferBytes buffer_bytes(const Call& call, Rank me, int size);

/// The buffers of a call, as its configuration has them.
struct BufferShape {
  DType result;           ///< Its type.
  std::size_t parts = 1;  ///< The input is so many, each as long as without a configuration.
};
/// Does what the other one does, with a configuration.
BufferBytes buffer_bytes(const Call& call, const BufferShape& shape, Rank me, int size);

/// Whether the arguments of `call` at rank `me` of `size` make sense. `operators`: those that the
/// program has created.
/// Errors: invalid_argument, which names the argument as its caller knows it.
Status check_call(const Call& call, const BufferShape& shape, Rank me, int size,
                  const Operators& operators);

/// The additional checks of a v-form: arrays, sizes, overlapping. `call.root` is a rank.
Status check_blocks(const Call& call, Rank me, int size);

}  // namespace anyccl
