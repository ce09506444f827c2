#pragma once
// A frame reader puts frames together from the bytes of a connection, and checks their length and
// their seal. Ranks that join read the answer with it. The root server and the leaders of hosts
// read the reports of waiting ranks with it. It never waits.

#include <optional>
#include <string_view>
#include <vector>

#include "platform/bootstrap/rendezvous/frame.hpp"

namespace anyccl::bootstrap {

/// A frame that came from the other end of the session as it is.
struct ReceivedFrame {
  Frame kind = Frame::failure;
  std::vector<std::byte> payload;
  Digest digest;  ///< The payload's.
};

/// The frames that arrive over one connection, in pieces.
class FrameReader {
 public:
  /// The most bytes that the payload of a frame of `kind` has in a group of `size` ranks; absent:
  /// no such frame comes this way.
  using Limit = std::optional<std::size_t> (*)(Frame kind, std::uint32_t size);
  explicit FrameReader(Limit limit, std::uint32_t size = 0) : limit_(limit), size_(size) {
    in_.expect(sizeof(FrameHeader));
  }

  /// Reads what is there. Absent: no frame is whole yet. `peer`: the other end in errors.
  /// Errors: remote_error when the connection broke, or brings what is no frame of the session.
  Result<std::optional<ReceivedFrame>> next(int fd, const Mac& session, std::string_view peer);

 private:
  Limit limit_;
  std::uint32_t size_;
  Inbox in_;
  std::optional<FrameHeader> header_;  // in_ gets its payload
};

/// The way up: hellos, and ranks that left.
std::optional<std::size_t> largest_report(Frame kind, std::uint32_t size);
/// The way down: the answer, or the place to wait for it.
std::optional<std::size_t> largest_reply(Frame kind, std::uint32_t size);

}  // namespace anyccl::bootstrap
