// The frames of a link, as collectives and messages read them. A first byte from kModes on says
// what they have besides: bit 0, checksums (ANYCCL_CHECKSUM); bit 1, connections that are replaced
// (ANYCCL_RECONNECT).

#include <sys/socket.h>

#include <array>
#include <cstring>

#include "input.hpp"
#include "platform/link/connector.hpp"
#include "platform/link/link.hpp"
#include "platform/link/seal.hpp"
#include "platform/transports/sockets/socket_transport.hpp"
#include "platform/transports/unix_socket/unix_transport.hpp"
#include "support/transports.hpp"

namespace anyccl::fuzz {
namespace {

constexpr std::uint8_t kModes = 0xFC;

/// Hears that a connection is lost.
struct Connector final : link::Connector {
  void connect(Rank) override {}
  void reconnect(Rank, int) override { lost = true; }
  bool lost = false;
};

/// Rank 0, connected with a peer that says what the input does.
class Victim {
 public:
  explicit Victim(Input& input) {
    const Input rest = input;
    const auto mode = input.take<std::uint8_t>();
    if (mode < kModes) input = rest;
    seals_ = mode >= kModes && mode % 2 != 0;
    link::LinkSettings settings;
    settings.checksums = seals_;
    settings.reconnects = mode >= kModes && mode % 4 >= 2;
    if (settings.reconnects) connector_ = std::make_shared<Connector>();
    link_.reset(new link::Link(unix_socket::unix_socket(), connector_, Rank{1}, settings));
    connect(input);
    const auto context = std::make_shared<link::Context>(Rank{0}, 0);
    auto channel = link_->open(context, Rank{1});
    test::require(channel.ok(), "open a channel");
    std::vector<link::PeerChannel> channels;
    channels.push_back({Rank{1}, *std::move(channel), true, false});
    auto made = sockets::make_socket_transport(context, std::move(channels));
    test::require(made.ok(), "make_socket_transport");
    transport_ = std::move(*made);
  }

  /// What it takes of the input it takes in statements: compilers differ in the order of arguments.
  void do_next(Input& input) {
    if (connector_ != nullptr && std::exchange(connector_->lost, false)) connect(input);
    switch (input.take<std::uint8_t>() % 6) {
      case 0: {
        const auto bytes = input.take_bytes(input.take<std::uint8_t>());
        return say(bytes, input.take<std::uint8_t>() % 4);
      }
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
  /// Where it may be the next one, with a greeting, mostly.
  void connect(Input& input) {
    test::Ends ends = test::connected_on_one_host();
    peer_ = std::move(ends[1]);
    sent_ = 0;
    test::require(link_->attach(std::move(ends[0]), nullptr).ok(), "attach");
    if (connector_ == nullptr) return;
    link::Resend::Greeting greeting;
    const auto how = input.take<std::uint8_t>();
    if (how % 8 == 1) greeting.received = input.take<std::uint8_t>();
    if (how % 8 == 2) greeting.received = input.take<std::uint64_t>();
    if (how % 8 != 3) say(std::as_bytes(std::span(&greeting, 1)));
  }
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
  void say_frame(Input& input) {
    link::FrameHeader header;
    header.type = input.take<std::uint8_t>() % 9;
    const auto flags = input.take<std::uint8_t>();
    header.flags = flags % 8;
    header.bytes = input.take<std::uint8_t>();
    header.context = input.take<std::uint8_t>() % 4;
    header.operation = input.take<std::uint8_t>() % 4;
    header.number = input.take<std::uint8_t>() % 4;
    header.total = input.take<std::uint8_t>();
    // It sends nothing, and ends the connection with a peer that has read more than that.
    const auto credit = input.take<std::uint64_t>();
    header.credit = credit % 8 == 7 ? credit : 0;
    if (header.type == link::kCall) header.bytes = sizeof(CallRecord);
    std::vector<std::byte> payload(header.bytes);
    const auto taken = input.take_bytes(payload.size());
    std::copy(taken.begin(), taken.end(), payload.begin());
    const std::size_t descriptors = header.type == link::kNotice ? header.number % 3 : 0;
    if (!seals_) {
      say(std::as_bytes(std::span(&header, 1)), descriptors);
      return say(payload);
    }
    link::SealedHeader sealed = link::sealed(header, sent_++, payload.data());
    if (flags % 16 >= 8) sealed.seal.payload ^= 1U << flags / 16;
    say(std::as_bytes(std::span(&sealed, 1)), descriptors);
    say(payload);
  }
  void poll(Input& input) {
    const auto operation = input.take<std::uint8_t>(), number = input.take<std::uint8_t>();
    const auto bytes = input.take<std::uint8_t>();
    Incoming in = test::from(1, operation % 4, number % 4, bytes);
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

  std::shared_ptr<Connector> connector_;  // null: a connection that is lost is not replaced
  std::shared_ptr<link::Link> link_;
  UniqueFd peer_;
  bool seals_ = false;
  std::uint64_t sent_ = 0;  // frames, over this connection
  std::unique_ptr<Transport> transport_;
  std::vector<std::byte> place_ = std::vector<std::byte>(4096);
  std::uint64_t message_ = 1;
};

}  // namespace

void run(Input input) {
  Victim victim(input);
  while (!input.empty()) victim.do_next(input);
}

}  // namespace anyccl::fuzz
