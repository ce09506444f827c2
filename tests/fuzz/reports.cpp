// The frames of ranks that join: what a member says to the root server, and the answer.

#include <sys/socket.h>

#include "input.hpp"
#include "platform/bootstrap/group/member_table.hpp"
#include "platform/bootstrap/rendezvous/receiver.hpp"
#include "support/transports.hpp"

namespace anyccl::fuzz {
namespace {

using namespace bootstrap;

constexpr Mac kSession{};

/// A frame with these contents, which the other end of the session has sealed; its header damaged
/// if the input says so.
std::vector<std::byte> next_frame(Input& input) {
  const auto kind = static_cast<Frame>(input.take<std::uint8_t>() % 7);
  const bool is_damaged = input.take<std::uint8_t>() % 8 == 7;
  const auto payload = input.take_bytes(input.take<std::uint16_t>() % 4096);
  auto header = seal(kSession, kind, payload);
  test::require(header.ok(), "seal");
  if (is_damaged) header->bytes ^= input.take<std::uint32_t>();
  std::vector<std::byte> bytes(bytes_of(*header).begin(), bytes_of(*header).end());
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  return bytes;
}

void read_reports(Receiver& receiver, MemberTable& table) {
  for (int reports = 0; reports < 4; ++reports) {
    const auto report = receiver.read_report();
    if (!report || report->left) return;
    for (const HelloFrame& frame : report->hellos)
      if (!table.add(frame.hello).ok()) return;
  }
}

}  // namespace

void run(Input input) {
  test::Ends ends = test::connected_on_one_host();
  const UniqueFd member = std::move(ends[1]);
  Receiver receiver;
  receiver.socket = std::move(ends[0]);
  receiver.session = kSession;
  receiver.rank = 1;
  FrameReader replies(largest_reply, 4);
  const bool hears_replies = input.take<std::uint8_t>() % 2 != 0;
  MemberTable table;
  while (!input.empty()) {
    const std::vector<std::byte> bytes = next_frame(input);
    static_cast<void>(
        ::send(member.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
    if (!hears_replies) {
      read_reports(receiver, table);
      continue;
    }
    const auto reply = replies.next(receiver.socket.get(), kSession, "the root server");
    if (reply.ok() && *reply && (*reply)->kind == Frame::failure)
      static_cast<void>(read_failure((*reply)->payload));
  }
}

}  // namespace anyccl::fuzz
