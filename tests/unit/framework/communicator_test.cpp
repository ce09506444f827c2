// Comm, with a transport that plays the peer.

#include "framework/communicator/communicator.hpp"

#include <array>

#include "base/error.hpp"
#include "fake_peers.hpp"
#include "framework/communicator/shutdown.hpp"
#include "framework/communicator/survivors.hpp"
#include "support/ranks.hpp"

namespace anyccl::test {
namespace {

/// Rank 1, which publishes and leaves while rank 0 finds out why it has to wait.
class LeavingPeer final : public FakePeers {
 public:
  explicit LeavingPeer(float number) : FakePeers(number, {Rank{1}}) {}
  PeerState state(Rank) override {
    left_ = true;
    return PeerState::left;
  }

 private:
  bool has_published(std::uint32_t) override { return left_; }
  bool left_ = false;
};

/// Rank 2 left long ago, after it published; rank 1 publishes late, before rank 0 looks at 2.
class LatePeer final : public FakePeers {
 public:
  explicit LatePeer(float number) : FakePeers(number, {Rank{1}, Rank{2}}) {}
  Status check() override {
    ++checks_;
    return {};
  }
  PeerState state(Rank peer) override {
    return peer == Rank{2} ? PeerState::left : PeerState::present;
  }

 private:
  bool has_published(std::uint32_t rank) override { return rank == 2 || checks_ > 3; }
  int checks_ = 0;
};

/// Rank 1, whose last words come while rank 0 looks whether it is still there.
class FailingPeer final : public FakePeers {
 public:
  FailingPeer() : FakePeers(0, {Rank{1}}) {}
  Status check() override {
    return gone_ ? error(Code::remote_error, "rank 1 failed: rank 2 died") : Status();
  }
  PeerState state(Rank) override {
    gone_ = true;
    return PeerState::dead;
  }

 private:
  bool has_published(std::uint32_t) override { return false; }
  bool gone_ = false;
};

/// Rank 1, which takes everything and says nothing until rank 0 has waited for it.
class SilentPeer final : public FakePeers {
 public:
  explicit SilentPeer(int& taken) : FakePeers(0, {Rank{1}}), taken_(taken) {}
  Status check() override { return error(Code::remote_error, "rank 1 says nothing"); }
  PeerState state(Rank) override { return PeerState::present; }

 private:
  bool has_published(std::uint32_t) override { return false; }
  anyccl::Publications::Offered offer(const Outgoing&, const std::byte*, bool) override {
    ++taken_;
    return anyccl::Publications::Offered::copied;
  }
  int& taken_;
};

/// This is rank 0 of `size`.
Membership members(int size, std::unique_ptr<Transport> transport) {
  Membership members;
  members.size = size;
  members.near_of.assign(static_cast<std::size_t>(size), 0);
  members.transports.push_back(std::move(transport));
  members.policy.environment.algorithms = *AlgorithmRules::parse("one_shot");
  return members;
}

TEST(Comm, does_not_blame_who_left_while_it_waits_for_another) {
  Comm comm(members(3, std::make_unique<LatePeer>(3.0F)));

  const float mine = 1;
  float sum = 0;
  Call call;
  call.count = 1;
  call.input = reinterpret_cast<const std::byte*>(&mine);
  call.output = reinterpret_cast<std::byte*>(&sum);
  ASSERT_OK(comm.run(call));
  EXPECT_EQ(sum, 7.0F);
}

Status all_reduce_with_failing_peer() {
  Comm comm(members(2, std::make_unique<FailingPeer>()));
  float x = 1;
  Call call;
  call.count = 1;
  call.input = call.output = reinterpret_cast<std::byte*>(&x);
  return comm.run(call);
}

Status recv_from_anyone_with_failing_peer() {
  Comm comm(members(2, std::make_unique<FailingPeer>()));
  float x = 1;
  Call call;
  call.collective = Collective::recv;
  call.root = kAnySource;
  call.count = 1;
  call.output = reinterpret_cast<std::byte*>(&x);
  return comm.run(call);
}

TEST(Comm, says_why_a_peer_went_rather_than_that_it_did) {
  EXPECT_EQ(all_reduce_with_failing_peer().message(), "rank 1 failed: rank 2 died");
  EXPECT_EQ(recv_from_anyone_with_failing_peer().message(), "rank 1 failed: rank 2 died");
  Comm comm(members(2, std::make_unique<FailingPeer>()));
  EXPECT_EQ(Survivors(comm).absence(std::array{Rank{1}}).message(), "rank 1 failed: rank 2 died");
}

TEST(Comm, does_not_touch_a_result_again_that_came_while_it_looked_for_failures) {
  Comm comm(members(2, std::make_unique<LeavingPeer>(3.0F)));

  const float mine = 1;
  float average = 0;
  Call call;
  call.op = ReduceOp::avg;
  call.count = 1;
  call.input = reinterpret_cast<const std::byte*>(&mine);
  call.output = reinterpret_cast<std::byte*>(&average);
  const auto operation = comm.issue(call);
  ASSERT_TRUE(operation.ok()) << operation.status().message();
  ASSERT_OK(comm.wait(**operation));
  EXPECT_EQ(average, 2.0F);

  ASSERT_OK(Shutdown(comm).finish());
  EXPECT_EQ(average, 2.0F);
}

/// How many tiles of a vector of 64 are under way before anything comes back.
int tiles_under_way(bool network, std::size_t tiles_in_ring) {
  constexpr std::size_t kTile = 4096;
  int tiles = 0;
  Membership me = members(2, std::make_unique<SilentPeer>(tiles));
  me.network = network;
  me.ring_bytes = tiles_in_ring * kTile;
  me.policy.environment.chunk_bytes = kTile;
  Comm comm(std::move(me));
  const std::vector<float> in(64 * kTile / sizeof(float));
  std::vector<float> out(in.size());
  Call call;
  call.count = in.size();
  call.input = reinterpret_cast<const std::byte*>(in.data());
  call.output = reinterpret_cast<std::byte*>(out.data());
  EXPECT_EQ(comm.run(call).code(), Code::remote_error);
  return tiles;
}

TEST(Comm, has_more_tiles_under_way_over_a_network_as_far_as_the_ring_has_room_for_them) {
  EXPECT_EQ(tiles_under_way(false, 1000), 2);
  EXPECT_EQ(tiles_under_way(true, 1000), 8);
  EXPECT_EQ(tiles_under_way(true, 5), 4);
  EXPECT_EQ(tiles_under_way(true, 3), 2);
}

}  // namespace
}  // namespace anyccl::test
