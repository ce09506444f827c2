#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "anyccl/status.hpp"
#include "base/unique_fd.hpp"
#include "platform/bootstrap/frame.hpp"
#include "platform/bootstrap/wire.hpp"

namespace anyccl::bootstrap {

/// The answer that all ranks of a group get: the table, or why there is none.
struct FinalReply {
  Frame kind = Frame::failure;
  std::shared_ptr<const std::vector<std::byte>> payload;  ///< Null: there is none yet.
  Digest digest;

  static Result<FinalReply> make(Frame kind, std::vector<std::byte> payload);
};

/// A rank that waits for the answer at the other end of an authenticated connection. Until then it
/// sends news.
struct Receiver {
  UniqueFd socket;
  Mac session{};
  std::uint32_t rank = 0;
  Inbox in;
  Outbox out;

  void expect_news() { in.expect(sizeof(FrameHeader) + sizeof(News)); }
  /// When the socket is readable, and there is no answer: the next news. A connection that broke or
  /// brings nonsense means that this rank has left. Absent: there is none at the moment.
  Result<std::optional<News>> read_news();
  /// Puts the answer, sealed for this one, into `out`.
  Status put(const FinalReply& reply);
  /// Sends what is in `out`, as far as it goes now. Result: whether the answer is sent, or this rank
  /// gone. If it `may_send_news`, only when it has closed the connection: closing one with news unread
  /// takes back what was sent.
  bool is_told(bool may_send_news);
  /// The events to poll(2) for.
  short events() const;
};

}  // namespace anyccl::bootstrap
