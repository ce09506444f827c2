#include "framework/call/check_call.hpp"

#include <fmt/format.h>

#include "algorithm/schedule/contract.hpp"
#include "base/error.hpp"

namespace anyccl {
namespace {

/// Checks the type, operator, count and root or peer, but no buffers. `parts`: of BufferShape, for
/// a count that overflows.
Status check_arguments(const Call& call, std::size_t parts, int size, const Operators& operators) {
  const std::size_t element = bytes_of(call.dtype);
  if (element == 0)
    return error(Code::invalid_argument, "datatype {} does not exist",
                 static_cast<int>(call.dtype));
  if (!call.is_point_to_point() && !exists(call.op) && operators.find(call.op) == nullptr)
    return error(Code::invalid_argument, "op {}",
                 call.op == Operators::kNone
                     ? "was not created with this communicator, or was destroyed"
                     : fmt::format("{} does not exist", static_cast<int>(call.op)));
  if (call.count > (std::size_t{1} << 62) / element / parts / static_cast<std::size_t>(size))
    return error(Code::invalid_argument, "count {} of {} is negative or overflows", call.count,
                 name_of(call.dtype));
  if (call.collective == Collective::recv && call.root == kAnySource) return {};
  if (index(call.root) < 0 || index(call.root) >= size)
    return error(Code::invalid_argument, "{} {} is not a rank of this communicator of {}",
                 call.is_point_to_point() ? "peer" : "root", index(call.root), size);
  return {};
}

}  // namespace

BufferBytes buffer_bytes(const Call& call, Rank me, int size) {
  const std::size_t bytes = call.count * bytes_of(call.dtype);
  if (call.is_point_to_point())
    return {call.collective == Collective::send ? bytes : 0,
            call.collective == Collective::recv ? bytes : 0};
  const bool at_root = call.root == me;
  return {bytes * blocks_held(call.collective, size, at_root, Space::input),
          bytes * blocks_held(call.collective, size, at_root, Space::output)};
}

BufferBytes buffer_bytes(const Call& call, const BufferShape& shape, Rank me, int size) {
  BufferBytes bytes = buffer_bytes(call, me, size);
  bytes.input *= shape.parts;
  bytes.output = bytes.output / bytes_of(call.dtype) * bytes_of(shape.result);
  return bytes;
}

Status check_call(const Call& call, const BufferShape& shape, Rank me, int size,
                  const Operators& operators) {
  const auto [result, parts] = shape;
  ANYCCL_CHECK(check_arguments(call, parts, size, operators));
  if (!has_equal_blocks(call.collective)) return check_blocks(call, me, size);
  const BufferBytes bytes = buffer_bytes(call, shape, me, size);
  if (bytes.input > 0 && call.input == nullptr)
    return error(Code::invalid_argument, "sendbuff is NULL and count is {}", call.count);
  if (bytes.output > 0 && call.output == nullptr)
    return error(Code::invalid_argument, "recvbuff is NULL and count is {}", call.count);
  const bool may_be_in_place = bytes_of(result) == bytes_of(call.dtype);
  if (!(may_be_in_place && call.in_place(me)) &&
      overlap(call.input, bytes.input, call.output, bytes.output))
    return error(Code::invalid_argument,
                 "sendbuff {} ({} bytes) and recvbuff {} ({} bytes) overlap, but not as in place{}",
                 fmt::ptr(call.input), bytes.input, fmt::ptr(call.output), bytes.output,
                 may_be_in_place ? ""
                                 : fmt::format(", as a result of {} cannot be in the place of {}",
                                               name_of(result), name_of(call.dtype)));
  return {};
}

}  // namespace anyccl
