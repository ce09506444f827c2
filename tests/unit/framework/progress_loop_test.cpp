#include "framework/communicator/progress_loop.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "fake_peers.hpp"

namespace anyccl::test {
namespace {

using std::chrono::seconds;

/// Records how long it was asked to sleep.
class Bed final : public FakePeers {
 public:
  Bed() : FakePeers(0, {Rank{1}}) {}
  PeerState state(Rank) override { return PeerState::present; }
  void sleep(std::chrono::nanoseconds most, std::span<const pollfd>) override { slept = most; }
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

/// Something moves until it is told to end.
class Steps final : public ProgressLoop::Work {
 public:
  explicit Steps(Operation& operation) : operation_(operation) {}
  bool advance() override {
    ++done;
    if (end.load()) operation_.complete({});
    return true;
  }
  void diagnose() override {}
  bool is_idle() const override { return false; }
  bool is_over() const override { return operation_.done(); }
  std::atomic<std::uint64_t> done{0};
  std::atomic<bool> end{false};

 private:
  Operation& operation_;
};

struct Waited final : Operation {
  bool advance() override { return false; }
  void awaited(std::vector<Rank>&) const override {}
};

TEST(BackgroundThread, is_not_woken_by_the_steps_of_one_that_waits) {
  Bed bed;
  Waited operation;
  Steps work(operation);
  Failure failure;
  const std::vector<Transport*> transports{&bed};
  ProgressLoop loop(work, failure, transports, 1, WaitMode::balanced);
  std::thread waiter([&] {
    ProgressLock lock = loop.progress_lock();
    EXPECT_TRUE(loop.wait(lock, operation).ok());
  });
  while (work.done == 0) std::this_thread::yield();
  const auto begin = std::chrono::steady_clock::now();
  constexpr int kSleeps = 100;  // of a millisecond each
  for (int i = 0; i < kSleeps; ++i) loop.sleep_in_background(seconds(30));
  const auto slept = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(slept, kSleeps * std::chrono::microseconds(500)) << work.done << " steps";
  EXPECT_FALSE(loop.is_quiet());
  work.end = true;
  waiter.join();
  EXPECT_TRUE(loop.is_quiet()) << "nothing is left for the background thread";
}

}  // namespace
}  // namespace anyccl::test
