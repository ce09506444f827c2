#pragma once
// A peer that keeps to no rules: its memory and its messages are written by hand.

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "platform/transports/shm/control.hpp"
#include "platform/transports/shm/layout.hpp"
#include "platform/transports/shm/memory.hpp"
#include "platform/transports/shm/shm_transport.hpp"
#include "support/transports.hpp"

namespace anyccl::shm::test {

/// Rank 1, and the transport of rank 0, which maps what rank 1 shows as it maps that of another
/// process.
class HostilePeer {
 public:
  static constexpr Layout kLayout{
      .ranks = 2, .banks = 2, .slots = 4, .slot_lines = 1, .ring_bytes = 65536};

  HostilePeer() {
    anyccl::test::Ends ends = anyccl::test::connected_on_one_host();
    const auto victim = std::make_shared<link::Context>(Rank{0}, 0);
    const auto own = std::make_shared<link::Context>(Rank{1}, 0);
    auto at_victim = channels(victim, 1, std::move(ends[0]));
    auto at_peer = channels(own, 0, std::move(ends[1]));
    channel_ = std::move(at_peer[0].channel);
    std::thread peer([&] { show(); });
    auto made = make_shm_transport(std::move(at_victim), {.me = Rank{0},
                                                          .context = victim,
                                                          .ranks = kLayout.ranks,
                                                          .banks = kLayout.banks,
                                                          .slots = kLayout.slots,
                                                          .ring_bytes = kLayout.ring_bytes,
                                                          .line_bytes = kLineBytes,
                                                          .message_line_bytes = kLineBytes,
                                                          .deadline = anyccl::test::patience()});
    peer.join();
    anyccl::test::require(made.ok() && made->transport != nullptr, "map what the peer shows");
    victim_ = std::move(made->transport);
  }

  Transport& victim() { return *victim_; }
  /// All that the victim reads.
  std::span<std::byte> memory() const { return {shown_.mapping.data(), shown_.mapping.size()}; }
  /// A message beside the memory; `fd`: -1, or a descriptor that goes with it.
  void say(const ControlMessage& message, int fd = -1) {
    anyccl::test::require(send(*channel_, message, {fd, -1}).ok(), "send a message");
  }
  /// What stands in the line of publication `number` of `operation`.
  void publish(std::uint64_t operation, std::uint32_t number, const Descriptor& d) const {
    Line& line = at<Line>(shown_.mapping.data(), kLayout.line(kLayout.slot_of(operation, number)));
    std::memcpy(line.data, &d, sizeof d);
    line.word.store(operation << 32U, std::memory_order_release);  // pairs with poll()
  }

 private:
  static std::vector<link::PeerChannel> channels(const std::shared_ptr<link::Context>& context,
                                                 int peer, UniqueFd socket) {
    std::vector<PeerSocket> sockets;
    sockets.push_back({Rank{peer}, std::move(socket), true, false});
    return anyccl::test::open_channels(context, std::move(sockets));
  }
  /// Its part of connect_peers().
  void show() {
    auto shown = create_shared(kLayout.bytes(), false, "test");
    auto doorbell = create_shared(4096, true, "test");
    anyccl::test::require(shown.ok() && doorbell.ok(), "create_shared");
    shown_ = *std::move(shown);
    ControlMessage message, answer;
    message.kind = ControlMessage::segment;
    message.bytes = kLayout.bytes();
    anyccl::test::require(send(*channel_, message, {shown_.fd.get(), doorbell->fd.get()}).ok(),
                          "send");
    Descriptors fds;
    for (int i = 0; i < 2; ++i)
      anyccl::test::require(await(*channel_, answer, fds, anyccl::test::patience()).ok(), "await");
    answer.kind = ControlMessage::mapped;
    answer.code = 1;
    anyccl::test::require(send(*channel_, answer).ok(), "send");
  }

  std::unique_ptr<link::Channel> channel_;
  SharedMemory shown_;
  std::unique_ptr<Transport> victim_;
};

}  // namespace anyccl::shm::test
