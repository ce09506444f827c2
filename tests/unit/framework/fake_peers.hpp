#pragma once

#include <utility>
#include <vector>

#include "platform/transport/transport.hpp"

namespace anyccl::test {

/// Peers of rank 0 that publish one number each, and never a message.
class FakePeers : public Transport, Publications, Messages {
 public:
  FakePeers(float number, std::vector<Rank> peers)
      : Publications({}), number_(number), peers_(std::move(peers)) {}
  std::string_view name() const override { return "fake"; }
  std::span<const Rank> peers() const override { return peers_; }
  Publications& publications() override { return *this; }
  Messages& messages() override { return *this; }
  std::size_t memory_bytes() override { return 0; }
  Status check() override { return {}; }
  bool call_of(Rank, std::uint64_t, CallRecord&) override { return false; }
  void append_alarms(std::vector<pollfd>&) override {}
  void sleep(std::chrono::nanoseconds, std::span<const pollfd>) override {}
  void wake() override {}
  void abort(const Status&) override {}
  void leave(Deadline /*deadline*/) override {}

 protected:
  /// Whether the number of this rank is there.
  virtual bool has_published(std::uint32_t rank) = 0;

 private:
  void announce(const CallRecord&) override {}
  Offered offer(const Outgoing&, const std::byte*, bool) override { return Offered::refused; }
  std::byte* reserve(const Outgoing&) override { return room_; }
  void publish(const Outgoing&) override {}
  const std::byte* poll(const Incoming& in) override {
    return has_published(in.rank) ? reinterpret_cast<const std::byte*>(&number_) : nullptr;
  }
  void consumed(const Incoming&) override {}
  void post(std::uint64_t, std::uint32_t, std::uint32_t) override {}
  bool finished(std::uint64_t, bool) override { return true; }
  bool settled() override { return true; }
  bool is_behind(Rank) override { return false; }

  std::size_t fragment_bytes() const override { return sizeof room_; }
  Sent send(const Fragment&, const std::byte*) override { return Sent::busy; }
  bool settled(Rank) override { return true; }
  bool peek(Rank, std::uint64_t, Envelope&) override { return false; }
  bool receive(const Fragment&, std::size_t, std::byte*) override { return false; }

  const float number_;
  const std::vector<Rank> peers_;
  alignas(64) std::byte room_[4096] = {};
};

/// Peers that are always there. They have published whatever is looked for, or nothing at all.
class PresentPeers final : public FakePeers {
 public:
  explicit PresentPeers(std::vector<Rank> peers, bool publish = false)
      : FakePeers(1.0F, std::move(peers)), publish_(publish) {}
  PeerState state(Rank) override { return PeerState::present; }

 private:
  bool has_published(std::uint32_t) override { return publish_; }

  const bool publish_;
};

}  // namespace anyccl::test
