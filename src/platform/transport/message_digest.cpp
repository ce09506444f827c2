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

}  // namespace

Status other_type(const Side& sender, const Side& receiver) {
  return error(Code::invalid_usage,
               "rank {} sends {} where rank {} receives {}: the two types must agree", sender.rank,
               contents(sender), receiver.rank, contents(receiver));
}

}  // namespace anyccl::message_digest
