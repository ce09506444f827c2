#pragma once
// All ranks of a communicator tell each other a fixed number of bytes, to make something together.

#include <vector>

#include "base/deadline.hpp"
#include "base/error.hpp"
#include "framework/communicator/communicator.hpp"

namespace anyccl {

/// The words of all ranks of `comm`, in their order. T can be copied byte by byte, and has no
/// padding. Errors: failures on the way; timeout after `deadline`, or after the limit of `comm` if
/// that is never.
template <typename T>
Result<std::vector<T>> exchange_with_all(Comm& comm, const T& mine,
                                         const Deadline& deadline = Deadline::never()) {
  std::vector<T> all(static_cast<std::size_t>(comm.size()));
  all[uindex(comm.rank())] = mine;
  Call call;
  call.collective = Collective::all_gather;
  call.dtype = DType::u8;
  call.count = sizeof(T);
  call.input = reinterpret_cast<std::byte*>(&all[uindex(comm.rank())]);
  call.output = reinterpret_cast<std::byte*>(all.data());
  if (!deadline.is_never()) call.timeout = deadline.operation_limit();
  ANYCCL_CHECK(comm.run(call));
  return all;
}

}  // namespace anyccl
