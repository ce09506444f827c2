// Comm, with a transport that plays the peer.

#include "framework/communicator.hpp"

#include "support/ranks.hpp"

namespace anyccl::test {
namespace {

/// Rank 1, which publishes its one number and leaves while rank 0 finds out why it has to wait.
class LeavingPeer final : public Transport {
 public:
  explicit LeavingPeer(float number) : number_(number) {}
  std::string_view name() const override { return "leaving"; }
  std::span<const Rank> peers() const override { return peers_; }
  void begin(const CallRecord&) override {}
  Offered offer(const Outgoing&, const std::byte*, bool) override { return Offered::refused; }
  std::byte* reserve(const Outgoing&) override { return room_; }
  void publish(const Outgoing&) override {}
  std::size_t capacity() const override { return sizeof room_; }
  std::size_t piece_bytes() const override { return sizeof room_; }
  bool peek(Rank, std::uint64_t, Envelope&) override { return false; }
  const std::byte* poll(const Incoming&) override {
    return left_ ? reinterpret_cast<const std::byte*>(&number_) : nullptr;
  }
  void consumed(const Incoming&) override {}
  void post(std::uint64_t, std::uint32_t, std::uint32_t) override {}
  bool finished(std::uint64_t, bool) override { return true; }
  bool settled() override { return true; }
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

 private:
  const std::vector<Rank> peers_ = {Rank{1}};
  float number_;
  bool left_ = false;
  alignas(64) std::byte room_[4096] = {};
};

TEST(Comm, does_not_touch_a_result_again_that_came_while_it_looked_for_trouble) {
  Membership members;
  members.size = 2;
  members.host_of = {0, 0};
  members.names = {"rank 0", "rank 1"};
  members.transports.push_back(std::make_unique<LeavingPeer>(3.0F));
  members.preferences.algorithm = "one_shot";
  Comm comm(std::move(members));

  const float mine = 1;
  float average = 0;
  Call call;
  call.op = ReduceOp::avg;
  call.count = 1;
  call.input = reinterpret_cast<const std::byte*>(&mine);
  call.output = reinterpret_cast<std::byte*>(&average);
  const auto task = comm.issue(call);
  ASSERT_TRUE(task.ok()) << task.status().message();
  ASSERT_OK(comm.wait(**task));
  EXPECT_EQ(average, 2.0F);

  comm.finish();
  EXPECT_EQ(average, 2.0F);
}

}  // namespace
}  // namespace anyccl::test
