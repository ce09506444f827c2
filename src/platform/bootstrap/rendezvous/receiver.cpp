#include "platform/bootstrap/rendezvous/receiver.hpp"

#include <poll.h>
#include <sys/socket.h>

#include "base/error.hpp"

namespace anyccl::bootstrap {

Result<FinalReply> FinalReply::make(Frame kind, std::vector<std::byte> payload) {
  FinalReply made{kind, std::make_shared<const std::vector<std::byte>>(std::move(payload)), {}};
  ANYCCL_TRY(made.digest, digest_of(*made.payload));
  return made;
}

FinalReply FinalReply::of(ReceivedFrame frame) {
  return {frame.kind, std::make_shared<const std::vector<std::byte>>(std::move(frame.payload)),
          frame.digest};
}

namespace {

/// Absent: it is none.
std::optional<Report> read_as_report(const ReceivedFrame& frame) {
  const Bytes payload = frame.payload;
  if (frame.kind == Frame::left)
    return payload.size() == sizeof(Left) ? std::optional(Report{{}, read_as<Left>(payload).rank})
                                          : std::nullopt;
  if (payload.empty() || payload.size() % sizeof(HelloFrame) != 0) return std::nullopt;
  Report report;
  for (std::size_t at = 0; at < payload.size(); at += sizeof(HelloFrame)) {
    report.hellos.push_back(read_as<HelloFrame>(payload.subspan(at)));
    if (!check_hello(report.hellos.back().hello).ok()) return std::nullopt;
  }
  return report;
}

}  // namespace

std::optional<Report> Receiver::read_report() {
  const Result<std::optional<ReceivedFrame>> frame = in.next(socket.get(), session, "the peer");
  if (frame.ok() && !*frame) return std::nullopt;
  std::optional<Report> report = frame.ok() ? read_as_report(**frame) : std::nullopt;
  return report ? std::move(report) : Report{{}, rank};
}

Status Receiver::put(const FinalReply& reply) {
  ANYCCL_TRY(const FrameHeader header, seal(session, reply.kind, reply.digest));
  out.put(bytes_of(header));
  out.put_shared(reply.payload);
  return {};
}

bool Receiver::send_rest(bool may_report, std::vector<HelloFrame>& late) {
  if (!out.flush(socket.get()).ok()) return true;
  if (!out.empty()) return false;
  if (!may_report) return true;
  ::shutdown(socket.get(), SHUT_WR);
  while (const std::optional<Report> report = read_report()) {
    if (report->left == rank) return true;
    late.insert(late.end(), report->hellos.begin(), report->hellos.end());
  }
  return false;
}

short Receiver::events() const {
  return out.empty() ? POLLIN : POLLOUT;
}

}  // namespace anyccl::bootstrap
