#pragma once
// A frame is the unit that a link carries on the wire: a header of 56 bytes, a Seal if
// ANYCCL_CHECKSUM is set (seal.hpp), and a payload. The header is sent as it is in memory, in
// little-endian order. Frames carry publications, fragments of messages, call records, notices and
// credits. The outbox writes them, and the reader checks each header that comes.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "anyccl/status.hpp"
#include "anyccl/types.hpp"

namespace anyccl::link {

static_assert(std::endian::native == std::endian::little, "the wire format is little-endian");

/// A communicator as the frames of a link name it: the same on its ranks, another for each of the
/// communicators that share the link.
using ContextKey = std::uint64_t;

enum FrameType : std::uint8_t {
  kData = 1,      ///< The reader's part of a publication, or a fragment of a message.
  kCall = 2,      ///< A CallRecord.
  kGoodbye = 3,   ///< Nothing follows in this context.
  kAbort = 4,     ///< Code (u32) and text; nothing follows in this context.
  kNotice = 5,    ///< A message of the transport, with `number` file descriptors.
  kCredit = 6,    ///< Nothing but `credit`.
  kWant = 7,      ///< The data frame that the header names is waited for: it may exceed the window.
  kReceived = 8,  ///< `credit` bytes of the link's frames have come. See Resend.
};

enum FrameFlag : std::uint8_t { kMessage = 1, kSized = 2 };

inline constexpr std::uint16_t kMagic = 0xACC4;  ///< Changes with the format.

struct FrameHeader {
  std::uint16_t magic = kMagic;
  std::uint8_t type = kData;
  std::uint8_t flags = 0;
  std::uint32_t bytes = 0;  ///< The payload's length.
  ContextKey context = 0;
  // Data and kWant only:
  std::uint64_t operation = 0;  ///< With kMessage: the message, per pair and direction.
  std::uint64_t digest = 0;     ///< See Publication and Fragment.
  std::uint32_t number = 0;
  std::uint32_t zero = 0;    ///< So that no byte of the header is left to chance.
  std::uint64_t total = 0;   ///< With kSized: bytes of the whole block or message of this pair.
  std::uint64_t credit = 0;  ///< See Window.
};
static_assert(sizeof(FrameHeader) == 56);

/// Names a data frame of a peer in a context.
struct Key {
  std::uint64_t operation = 0;  ///< Or the message.
  std::uint32_t number = 0;
  bool is_message = false;  ///< A fragment of one, else a publication.
  bool operator==(const Key&) const = default;
};

inline Key key_of(const FrameHeader& h) {
  return {h.operation, h.number, (h.flags & kMessage) != 0};
}

/// Longest payload of a data frame. Longer ones are never allocated for.
inline constexpr std::size_t kMaxFrame = std::size_t{1} << 30;
/// Longest payload of any other frame.
inline constexpr std::size_t kMaxControl = 4096;
/// Most file descriptors that come with a notice.
inline constexpr std::size_t kMaxDescriptors = 2;

/// The problem of a header from the wire, or null.
const char* problem_of(const FrameHeader& header);

/// The payload of an abort frame. A text that is too long is cut.
std::vector<std::byte> abort_payload(const Status& why);
/// The status that the abort frame of `from` means for this rank.
Status received_abort(Rank from, const std::byte* payload, std::size_t bytes);

}  // namespace anyccl::link
