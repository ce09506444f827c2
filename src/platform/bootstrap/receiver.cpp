#include "platform/bootstrap/receiver.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <array>

#include "base/error.hpp"

namespace anyccl::bootstrap {

Result<FinalReply> FinalReply::make(Frame kind, std::vector<std::byte> payload) {
  FinalReply made{kind, std::make_shared<const std::vector<std::byte>>(std::move(payload)), {}};
  ANYCCL_TRY(made.digest, digest_of(*made.payload));
  return made;
}

Result<std::optional<News>> Receiver::read_news() {
  if (!in.fill(socket.get()).ok()) return std::optional(News{rank, 1});
  if (!in.full()) return std::optional<News>();
  const auto header = read_as<FrameHeader>(in.bytes());
  const Bytes payload = in.bytes().subspan(sizeof header);
  ANYCCL_TRY(const bool sealed, is_sealed(session, header, payload));
  const bool proper = sealed && header.kind == static_cast<std::uint32_t>(Frame::news);
  const News news = proper ? read_as<News>(payload) : News{rank, 1};
  expect_news();
  return std::optional(news);
}

Status Receiver::put(const FinalReply& reply) {
  ANYCCL_TRY(const FrameHeader header, seal(session, reply.kind, reply.digest));
  out.put(bytes_of(header));
  out.put_shared(reply.payload);
  return {};
}

bool Receiver::is_told(bool may_send_news) {
  if (!out.flush(socket.get()).ok()) return true;
  if (!out.empty()) return false;
  if (!may_send_news) return true;
  ::shutdown(socket.get(), SHUT_WR);
  std::array<std::byte, 4096> unread;
  ssize_t got = 0;
  do got = ::recv(socket.get(), unread.data(), unread.size(), MSG_DONTWAIT);
  while (got > 0 || (got < 0 && errno == EINTR));
  return got == 0 || errno != EAGAIN;
}

short Receiver::events() const {
  return out.empty() ? POLLIN : POLLOUT;
}

}  // namespace anyccl::bootstrap
