#include "platform/bootstrap/rendezvous/frame_reader.hpp"

#include "base/error.hpp"
#include "platform/bootstrap/group/table.hpp"

namespace anyccl::bootstrap {
namespace {

Status malformed(std::string_view peer) {
  return error(Code::remote_error, "{} answered in a form that cannot be understood", peer);
}

}  // namespace

Result<std::optional<ReceivedFrame>> FrameReader::next(int fd, const Mac& session,
                                                       std::string_view peer) {
  ANYCCL_CHECK(in_.fill(fd, peer));
  if (!in_.full()) return std::optional<ReceivedFrame>();
  if (!header_) {
    header_ = read_as<FrameHeader>(in_.bytes());
    const std::optional<std::size_t> most = limit_(static_cast<Frame>(header_->kind), size_);
    if (!most || header_->bytes > *most) return malformed(peer);
    in_.expect(header_->bytes);
    ANYCCL_CHECK(in_.fill(fd, peer));
    if (!in_.full()) return std::optional<ReceivedFrame>();
  }
  ReceivedFrame frame{static_cast<Frame>(header_->kind), in_.take(), {}};
  ANYCCL_TRY(frame.digest, digest_of(frame.payload));
  ANYCCL_TRY(const bool sealed, is_sealed(session, *header_, frame.digest));
  if (!sealed) return malformed(peer);
  header_.reset();
  in_.expect(sizeof(FrameHeader));
  return std::optional(std::move(frame));
}

std::optional<std::size_t> largest_report(Frame kind, std::uint32_t /*size*/) {
  if (kind == Frame::hello) return kMostHellos * sizeof(HelloFrame);
  if (kind == Frame::left) return sizeof(Left);
  return std::nullopt;
}

std::optional<std::size_t> largest_reply(Frame kind, std::uint32_t size) {
  switch (kind) {
    case Frame::table:
      return sizeof(GroupHead) + size * kMostEntryBytes;
    case Frame::failure:
      return sizeof(FailureHead) + kFailureText;
    case Frame::place:
      return sizeof(Place) + sizeof(Hello);
    default:
      return std::nullopt;
  }
}

}  // namespace anyccl::bootstrap
