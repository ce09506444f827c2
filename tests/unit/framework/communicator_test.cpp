// Comm, with a transport that plays the peer.

#include "framework/communicator/communicator.hpp"

#include "support/ranks.hpp"

namespace anyccl::test {
namespace {

/// Rank 1, which publishes its one number and leaves while rank 0 finds out why it has to wait.
class LeavingPeer : public Transport {
 public:
  explicit LeavingPeer(float number) : number_(number) {}
  std::string_view name() const override { return "leaving"; }
  std::span<const Rank> peers() const override { return peers_; }
  void begin(const CallRecord&) override {}
  Offered offer(const Outgoing&, const std::byte*, bool) override { return Offered::refused; }
  std::byte* reserve(const Outgoing&) override { return room_; }
  void publish(const Outgoing&) override {}
  std::size_t fragment_bytes() const override { return sizeof room_; }
  bool peek(Rank, std::uint64_t, Envelope&) override { return false; }
  const std::byte* poll(const Incoming&) override {
    return left_ ? reinterpret_cast<const std::byte*>(&number_) : nullptr;
  }
  void consumed(const Incoming&) override {}
  void post(std::uint64_t, std::uint32_t, std::uint32_t) override {}
  bool finished(std::uint64_t, bool) override { return true; }
  bool settled() override { return true; }
  bool is_behind(Rank) override { return false; }
  Status check() override { return {}; }
  PeerState state(Rank) override {
    left_ = true;
    return PeerState::left;
  }
  bool call_of(Rank, std::uint64_t, CallRecord&) override { return false; }
  void sleep(std::chrono::nanoseconds) override {}
  void wake() override {}
  void abort(const Status&) override {}
  void leave() override {}

 protected:
  float number_;

 private:
  const std::vector<Rank> peers_ = {Rank{1}};
  bool left_ = false;
  alignas(64) std::byte room_[4096] = {};
};

/// Rank 2 left long ago, after it published; rank 1 publishes late, before rank 0 looks at 2.
class LatePeer final : public LeavingPeer {
 public:
  using LeavingPeer::LeavingPeer;
  std::span<const Rank> peers() const override { return both_; }
  const std::byte* poll(const Incoming& in) override {
    return in.rank == 2 || checks_ > 3 ? reinterpret_cast<const std::byte*>(&number_) : nullptr;
  }
  Status check() override {
    ++checks_;
    return {};
  }
  PeerState state(Rank peer) override {
    return peer == Rank{2} ? PeerState::left : PeerState::present;
  }

 private:
  const std::vector<Rank> both_ = {Rank{1}, Rank{2}};
  int checks_ = 0;
};

/// This is rank 0 of `size`.
Membership members(int size, std::unique_ptr<Transport> transport) {
  Membership members;
  members.size = size;
  for (int r = 0; r < size; ++r) {
    members.near_of.push_back(0);
    members.names.push_back("rank " + std::to_string(r));
  }
  members.transports.push_back(std::move(transport));
  members.policy.algorithm = "one_shot";
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

  comm.finish();
  EXPECT_EQ(average, 2.0F);
}

}  // namespace
}  // namespace anyccl::test
