#include "framework/communicator/progress_loop.hpp"

#include <gtest/gtest.h>

#include "fake_peers.hpp"

namespace anyccl::test {
namespace {

using std::chrono::seconds;

/// Records how long it was asked to sleep.
class Bed final : public FakePeers {
 public:
  Bed() : FakePeers(0, {Rank{1}}) {}
  PeerState state(Rank) override { return PeerState::present; }
  void sleep(std::chrono::nanoseconds most) override { slept = most; }
  std::chrono::nanoseconds slept{-1};

 private:
  bool has_published(std::uint32_t) override { return false; }
};

struct Nothing final : ProgressLoop::Work {
  bool advance() override { return false; }
  void diagnose() override {}
  bool is_idle() const override { return false; }
  bool is_over() const override { return false; }
};

class Loop : public testing::Test {
 protected:
  std::chrono::nanoseconds sleep() {
    ProgressLock lock = loop_.progress_lock();
    loop_.lock(lock);
    loop_.sleep(lock, seconds(30));
    return bed_.slept;
  }

  Bed bed_;
  Nothing work_;
  Failure failure_;
  std::vector<Transport*> transports_{&bed_};
  ProgressLoop loop_{work_, failure_, transports_, 1, WaitMode::balanced};
};

TEST_F(Loop, sleeps_as_long_as_nothing_comes) {
  EXPECT_EQ(sleep(), seconds(30));
}

TEST_F(Loop, does_not_sleep_if_it_was_woken_just_before) {
  loop_.wake();
  EXPECT_EQ(sleep(), seconds(0));
  EXPECT_EQ(sleep(), seconds(30)) << "once";
}

TEST_F(Loop, does_not_sleep_if_the_communicator_is_to_fail) {
  failure_.ask(Status(Code::aborted, "enough"));
  EXPECT_EQ(sleep(), seconds(0));
}

}  // namespace
}  // namespace anyccl::test
