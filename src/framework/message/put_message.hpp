#pragma once
// What a put or a signal is on its way: one message with a header, which a short put follows in the
// same message, and a longer one, or one whose bytes a stream has still to make, as the next
// message of the pair.

#include <array>
#include <cstring>

#include "framework/call/call.hpp"
#include "framework/call/one_sided_call.hpp"

namespace anyccl {

struct PutHeader {
  std::uint32_t window = 0;  ///< 0: it is a signal only, and has no bytes.
  std::uint16_t signal = 0, context = 0;
  std::uint64_t offset = 0, bytes = 0;
};
static_assert(sizeof(PutHeader) == 24);

/// The most bytes of a put that travel with the header, and of such a message.
inline constexpr std::size_t kMostWithHeader = 1000;
inline constexpr std::size_t kMostPutMessage = sizeof(PutHeader) + kMostWithHeader;

/// The header of a call that is right.
inline PutHeader header_of(const OneSidedCall& call) {
  return {.window = call.window,
          .signal = static_cast<std::uint16_t>(call.signal),
          .context = static_cast<std::uint16_t>(call.context),
          .offset = call.offset,
          .bytes = call.bytes()};
}

/// The messages of a put or signal to another rank, as sends.
class PutMessage {
 public:
  /// `apart`: the bytes are not there yet, so they follow whatever their number.
  PutMessage(const OneSidedCall& call, bool apart)
      : call_(call),
        header_(header_of(call)),
        follows_(header_.bytes > kMostWithHeader || (apart && header_.bytes > 0)) {
    std::memcpy(bytes_.data(), &header_, sizeof header_);
    if (!is_followed() && header_.bytes > 0)
      std::memcpy(bytes_.data() + sizeof header_, call.input, header_.bytes);
  }
  bool is_followed() const { return follows_; }
  /// Lives as long as this.
  Call first() const {
    return send(kPutTag, bytes_.data(), sizeof header_ + (is_followed() ? 0 : header_.bytes));
  }
  Call rest() const { return send(kPutBytesTag, call_.input, header_.bytes); }

 private:
  Call send(std::uint32_t tag, const std::byte* at, std::size_t bytes) const {
    Call call;
    call.collective = Collective::send;
    call.dtype = DType::u8;
    call.root = call_.peer;
    call.tag = tag;
    call.count = bytes;
    call.input = at;
    return call;
  }

  const OneSidedCall& call_;
  const PutHeader header_;
  const bool follows_;
  std::array<std::byte, kMostPutMessage> bytes_;  // those that are used are set
};

}  // namespace anyccl
