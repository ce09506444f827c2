#include "platform/link/frame.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <string>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "platform/transport/call_record.hpp"

namespace anyccl::link {
namespace {

using CodeOnWire = std::uint32_t;

const char* problem_of_data(const FrameHeader& header) {
  if ((header.flags & ~(kMessage | kSized)) != 0) return "unknown flags";
  if (header.bytes > kMaxFrame) return "an absurd length";
  const bool sized = (header.flags & kSized) != 0;
  if (sized && header.bytes > header.total) return "more bytes than its message has";
  return nullptr;
}

}  // namespace

const char* problem_of(const FrameHeader& header) {
  if (header.magic != kMagic) return "a wrong magic number";
  const auto length_is = [&](bool right) { return right ? nullptr : "a wrong length"; };
  switch (header.type) {
    case kData:
      return problem_of_data(header);
    case kCall:
      return length_is(header.bytes == sizeof(CallRecord));
    case kGoodbye:
    case kCredit:
    case kWant:
    case kReceived:
      return length_is(header.bytes == 0);
    case kAbort:
      return length_is(header.bytes >= sizeof(CodeOnWire) && header.bytes <= kMaxControl);
    case kNotice:
      return length_is(header.bytes <= kMaxControl && header.number <= kMaxDescriptors);
    default:
      return "an unknown type";
  }
}

std::vector<std::byte> abort_payload(const Status& why) {
  const std::string_view text = why.message().substr(0, kMaxControl - sizeof(CodeOnWire));
  const auto code = static_cast<CodeOnWire>(why.code());
  std::vector<std::byte> payload(sizeof code + text.size());
  std::memcpy(payload.data(), &code, sizeof code);
  std::copy_n(std::as_bytes(std::span(text)).data(), text.size(), payload.data() + sizeof code);
  return payload;
}

Status received_abort(Rank from, const std::byte* payload, std::size_t bytes) {
  CodeOnWire code = 0;
  std::memcpy(&code, payload, sizeof code);
  const std::string text =
      printable({reinterpret_cast<const char*>(payload) + sizeof code, bytes - sizeof code});
  // A mismatch of calls and an abort by the user are the same everywhere, and who says that a rank
  // is gone is not to blame; anything else is, seen from here, a failure of that rank.
  if (code == static_cast<CodeOnWire>(Code::aborted))
    return error(Code::aborted, "rank {} aborted: {}", index(from), text);
  if (code == static_cast<CodeOnWire>(Code::invalid_usage))
    return error(Code::invalid_usage, "rank {} stopped: {}", index(from), text);
  if (code == static_cast<CodeOnWire>(Code::remote_error))
    return error(Code::remote_error, "{}", text);
  return error(Code::remote_error, "rank {} failed: {}", index(from), text);
}

}  // namespace anyccl::link
