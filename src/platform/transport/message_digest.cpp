#include "platform/transport/message_digest.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/types.hpp"

namespace anyccl::message_digest {
namespace {

std::string contents(const Side& side) {
  const DType type = dtype_of(side.digest);
  const std::size_t element = std::max<std::size_t>(1, bytes_of(type));
  return fmt::format("{} {}", side.bytes / element, name_of(type));
}

const char* way(const Side& side) {
  return is_in_queues(side.digest) ? "in queues of its device" : "by copies, or on the host";
}

}  // namespace

Status other_type(const Side& sender, const Side& receiver) {
  if (is_in_queues(sender.digest) != is_in_queues(receiver.digest))
    return error(Code::invalid_usage,
                 "rank {} sends {} {}, and rank {} receives {} {}: the ranks use queues of their "
                 "devices, so both ends must be there (docs/devices.md), or neither",
                 sender.rank, contents(sender), way(sender), receiver.rank, contents(receiver),
                 way(receiver));
  return error(Code::invalid_usage,
               "rank {} sends {} where rank {} receives {}: the two types must agree", sender.rank,
               contents(sender), receiver.rank, contents(receiver));
}

}  // namespace anyccl::message_digest
