#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "anyccl/status.hpp"
#include "platform/transport/messages.hpp"
#include "platform/transport/publications.hpp"

namespace anyccl::sockets {

// A frame of a stream: a header, then `bytes` bytes of payload. Sent as it is in memory.
static_assert(std::endian::native == std::endian::little, "the wire format is little-endian");

enum FrameType : std::uint8_t {
  kData = 1,     ///< The reader's part of a publication, or a fragment of a message.
  kCall = 2,     ///< A CallRecord.
  kGoodbye = 3,  ///< Nothing follows.
  kAbort = 4,    ///< Code (u32) and text; nothing follows.
};

enum FrameFlag : std::uint8_t { kMessage = 1, kSized = 2 };

inline constexpr std::uint16_t kMagic = 0xACC2;  ///< Changes with the format.

struct FrameHeader {
  std::uint16_t magic = kMagic;
  std::uint8_t type = kData;
  std::uint8_t flags = 0;
  std::uint32_t bytes = 0;  ///< Of the payload.
  // Data only:
  std::uint64_t operation = 0;  ///< With kMessage: the message, per pair and direction.
  std::uint32_t number = 0, digest = 0;
  std::uint64_t total = 0;  ///< With kSized: bytes of the whole block or message of this pair.
};
static_assert(sizeof(FrameHeader) == 32);

/// Longest payload of a data frame. Longer ones are never allocated for.
inline constexpr std::size_t kMaxFrame = std::size_t{1} << 30;
/// Longest payload of any other frame.
inline constexpr std::size_t kMaxControl = 4096;

/// The problem of a header from the wire, or null.
const char* problem_of(const FrameHeader& header);

/// The header of `reader`'s part of `out`.
FrameHeader header_of(const Outgoing& out, const ReaderOf& reader);
FrameHeader header_of(const Fragment& out);

/// A whole abort frame. A text that is too long is cut.
std::vector<std::byte> abort_frame(const Status& why);
/// The status that an abort frame of `from` means for this rank.
Status received_abort(Rank from, const std::byte* payload, std::size_t bytes);

}  // namespace anyccl::sockets
