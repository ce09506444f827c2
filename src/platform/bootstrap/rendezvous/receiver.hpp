#pragma once
// A receiver is a rank that waits for the answer, as the root server or a leader sees it. Reports
// of the rank come over its connection as hello and left frames, and the answer goes out as a table
// or failure frame (frame.hpp). No function here waits: the owner polls.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "anyccl/status.hpp"
#include "base/unique_fd.hpp"
#include "platform/bootstrap/rendezvous/frame_reader.hpp"
#include "platform/bootstrap/socket/wire.hpp"

namespace anyccl::bootstrap {

/// The answer that all ranks of a group get: the table, or why there is none.
struct FinalReply {
  Frame kind = Frame::failure;
  std::shared_ptr<const std::vector<std::byte>> payload;  ///< Null until there is one.
  Digest digest;

  static Result<FinalReply> make(Frame kind, std::vector<std::byte> payload);
  /// As it came.
  static FinalReply of(ReceivedFrame frame);
};

/// The words of a rank while it waits for the answer.
struct Report {
  std::vector<HelloFrame> hellos;  ///< Those of ranks that it speaks for.
  std::optional<std::uint32_t> left = {};
};

/// A rank that waits for the answer at the other end of an authenticated connection. Until then it
/// reports.
struct Receiver {
  UniqueFd socket;
  Mac session{};
  std::uint32_t rank = 0;
  FrameReader in{largest_report};
  Outbox out;

  /// When the socket is readable, and there is no answer: the next report. A connection that broke
  /// or brings nonsense means that this rank has left. Absent: there is none at the moment.
  std::optional<Report> read_report();
  /// Puts the answer, sealed for this one, into `out`.
  Status put(const FinalReply& reply);
  /// Sends what is in `out`, as far as it goes now. Result: whether the answer is sent, or this
  /// rank gone. If it `may_report`, only when it has closed the connection: closing one with
  /// reports unread takes back what was sent; the hellos that still come are added to `late`.
  bool send_rest(bool may_report, std::vector<HelloFrame>& late);
  /// The events to poll(2) for.
  short events() const;
};

}  // namespace anyccl::bootstrap
