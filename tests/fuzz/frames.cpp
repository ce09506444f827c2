// The frames of a link, as collectives and messages read them.

#include <sys/socket.h>

#include <array>
#include <cstring>

#include "input.hpp"
#include "platform/transport/sockets/socket_transport.hpp"
#include "support/transports.hpp"

namespace anyccl::fuzz {
namespace {

/// Rank 0, connected with a peer that says what the input does.
class Victim {
 public:
  Victim() {
    test::Ends ends = test::connected_on_one_host();
    peer_ = std::move(ends[1]);
    std::vector<PeerSocket> sockets;
    sockets.push_back({Rank{1}, std::move(ends[0]), true, false});
    const auto context = std::make_shared<fabric::Context>(Rank{0}, 0);
    auto made =
        sockets::make_socket_transport(context, test::open_channels(context, std::move(sockets)));
    test::require(made.ok(), "make_socket_transport");
    transport_ = std::move(*made);
  }

  void do_next(Input& input) {
    switch (input.take<std::uint8_t>() % 6) {
      case 0:
        return say(input.take_bytes(input.take<std::uint8_t>()), input.take<std::uint8_t>() % 4);
      case 1:
        return say_frame(input);
      case 2:
        return poll(input);
      case 3:
        return receive();
      case 4:
        static_cast<void>(transport_->check());
        return static_cast<void>(transport_->state(Rank{1}));
      default:
        CallRecord record;
        static_cast<void>(transport_->call_of(Rank{1}, input.take<std::uint8_t>(), record));
        return static_cast<void>(transport_->calls_of(Rank{1}));
    }
  }

 private:
  /// With so many descriptors.
  void say(std::span<const std::byte> bytes, std::size_t descriptors = 0) const {
    if (bytes.empty()) return;
    iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(4 * sizeof(int))> room{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (descriptors > 0) {
      message.msg_control = room.data();
      message.msg_controllen = CMSG_SPACE(descriptors * sizeof(int));
      cmsghdr* const item = CMSG_FIRSTHDR(&message);
      item->cmsg_level = SOL_SOCKET;
      item->cmsg_type = SCM_RIGHTS;
      item->cmsg_len = CMSG_LEN(descriptors * sizeof(int));
      for (std::size_t i = 0; i < descriptors; ++i) {
        const int fd = peer_.get();
        std::memcpy(CMSG_DATA(item) + i * sizeof fd, &fd, sizeof fd);
      }
    }
    // What the socket does not take is lost, which is one more thing that may come.
    static_cast<void>(::sendmsg(peer_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT));
  }
  /// One with the right magic number, of a few contexts, operations and messages.
  void say_frame(Input& input) const {
    fabric::FrameHeader header;
    header.type = input.take<std::uint8_t>() % 9;
    header.flags = input.take<std::uint8_t>() % 8;
    header.bytes = input.take<std::uint8_t>();
    header.context = input.take<std::uint8_t>() % 4;
    header.operation = input.take<std::uint8_t>() % 4;
    header.number = input.take<std::uint8_t>() % 4;
    header.total = input.take<std::uint8_t>();
    // It sends nothing, and ends the connection with a peer that has read more than that.
    const auto credit = input.take<std::uint64_t>();
    header.credit = credit % 8 == 7 ? credit : 0;
    if (header.type == fabric::kCall) header.bytes = sizeof(CallRecord);
    std::vector<std::byte> payload(header.bytes);
    const auto taken = input.take_bytes(payload.size());
    std::copy(taken.begin(), taken.end(), payload.begin());
    say(std::as_bytes(std::span(&header, 1)),
        header.type == fabric::kNotice ? header.number % 3 : 0);
    say(payload);
  }
  void poll(Input& input) {
    Incoming in = test::from(1, input.take<std::uint8_t>() % 4, input.take<std::uint8_t>() % 4,
                             input.take<std::uint8_t>());
    const auto how = input.take<std::uint8_t>();
    in.sized = how % 2 != 0;
    in.total = in.bytes;
    if (how % 4 >= 2) in.into = place_.data();
    const std::byte* const found = transport_->publications().poll(in);
    if (found == nullptr) return;
    std::memmove(place_.data(), found, in.bytes);
    transport_->publications().consumed(in);
    if (how % 8 >= 4) static_cast<void>(transport_->publications().finished(in.operation, false));
  }
  /// The next message, as a receive that believes its envelope.
  void receive() {
    Messages& messages = transport_->messages();
    Envelope envelope;
    if (!messages.peek(Rank{1}, message_, envelope) || envelope.total > place_.size()) return;
    const Fragment in{.peer = Rank{1},
                      .digest = envelope.digest,
                      .message = message_,
                      .bytes = envelope.total,
                      .total = envelope.total};
    if (messages.receive(in, 0, place_.data())) ++message_;
  }

  UniqueFd peer_;
  std::unique_ptr<Transport> transport_;
  std::vector<std::byte> place_ = std::vector<std::byte>(4096);
  std::uint64_t message_ = 1;
};

}  // namespace

void run(Input input) {
  Victim victim;
  while (!input.empty()) victim.do_next(input);
}

}  // namespace anyccl::fuzz
