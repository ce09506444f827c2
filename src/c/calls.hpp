#pragma once
// From the arguments of the C interface to calls.

#include "c/handle.hpp"

namespace anyccl {

/// The number of an operator that the program has created with `comm`.
ReduceOp number_of_created(anycclRedOp_t op, anycclComm_t comm) noexcept;

/// An operator as calls have it. What does not exist, or was destroyed, becomes one that does not
/// exist.
inline ReduceOp number_of(anycclRedOp_t op, anycclComm_t comm) noexcept {
  constexpr std::uint32_t kMostOfLibrary = 127;
  const auto value = static_cast<std::uint32_t>(op);
  return value <= kMostOfLibrary ? static_cast<ReduceOp>(value) : number_of_created(op, comm);
}

inline Call make_call(Collective what, const void* send, void* recv, std::size_t count,
                      anycclDataType_t type, int root = 0, ReduceOp op = ReduceOp::sum) {
  Call call;
  call.collective = what;
  call.dtype = static_cast<DType>(as_byte(type));
  call.op = op;
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
