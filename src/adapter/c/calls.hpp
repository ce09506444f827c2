#pragma once
// From the arguments of the C interface to calls.

#include "adapter/c/handle.hpp"

namespace anyccl {

inline Call make_call(Collective what, const void* send, void* recv, std::size_t count,
                      anycclDataType_t type, int root = 0, anycclRedOp_t op = anycclSum) {
  Call call;
  call.collective = what;
  call.dtype = static_cast<DType>(as_byte(type));
  call.op = static_cast<ReduceOp>(as_byte(op));
  call.root = Rank{root};
  call.count = count;
  call.input = static_cast<const std::byte*>(send);
  call.output = static_cast<std::byte*>(recv);
  return call;
}

/// Gives `call`, on a communicator that can be used, this configuration; null: none. Errors:
/// invalid_argument, naming the field and its value.
Status configure(const anycclCollConfig_t* config, anycclComm_t comm, Call& call);

/// Runs the call, or adds it to the group.
anycclResult_t launch(const Call& call, anycclComm_t comm, anycclStream_t stream) noexcept;

}  // namespace anyccl
