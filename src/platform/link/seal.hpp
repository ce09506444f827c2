#pragma once
// A seal follows the header of each frame on the wire if ANYCCL_CHECKSUM is set. It has a number
// and two checksums in 16 bytes, so that a rank notices frames that were damaged, lost or repeated
// on their way. The outbox writes seals, and the reader checks them.

#include <cstdint>

#include "platform/link/frame.hpp"

namespace anyccl::link {

/// The part of a frame between its header and its payload.
struct Seal {
  std::uint64_t number = 0;   ///< The frame's, on this link in this direction.
  std::uint32_t payload = 0;  ///< CRC-32C of the payload,
  std::uint32_t header = 0;   ///< and of all that is before this.
};
struct SealedHeader {
  FrameHeader header;
  Seal seal;
};
static_assert(sizeof(SealedHeader) == 72);

SealedHeader sealed(const FrameHeader& header, std::uint64_t number, const std::byte* payload);
/// The problem of a header from the wire where the frame `expected` comes next, or null.
const char* problem_of(const SealedHeader& sealed, std::uint64_t expected);
/// Whether these `bytes` bytes are the payload that was sealed.
bool fits(const Seal& seal, const std::byte* payload, std::size_t bytes);
/// The problem of a payload that does not fit.
inline constexpr const char* kDamaged = "a damaged frame";

}  // namespace anyccl::link
