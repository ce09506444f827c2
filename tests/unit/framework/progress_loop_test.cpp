#include "framework/communicator/progress_loop.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
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
  bool advance() override {
    ++done;
    if (end.load()) operation->complete({});
    return true;
  }
  void diagnose() override {}
  bool is_idle() const override { return false; }
  bool is_over() const override { return operation->done(); }
  std::shared_ptr<Operation> operation;
  std::atomic<std::uint64_t> done{0};
  std::atomic<bool> end{false};
};

struct Waited final : Operation {
  bool advance() override { return false; }
  void awaited(std::vector<Rank>&) const override {}
};

/// A loop, and a thread that waits there until it is told to leave.
struct BackgroundThread : testing::Test {
  BackgroundThread() { wait_again(); }
  ~BackgroundThread() override {
    if (waiter.joinable()) leave();
  }
  void wait_again() {
    work.operation = std::make_shared<Waited>();
    work.end = false;
    work.done = 0;
    waiter = std::thread([this] {
      ProgressLock lock = loop.progress_lock();
      EXPECT_TRUE(loop.wait(lock, *work.operation).ok());
    });
    while (work.done == 0) std::this_thread::yield();
  }
  void leave() {
    work.end = true;
    waiter.join();
  }

  Bed bed;
  Steps work;
  Failure failure;
  const std::vector<Transport*> transports{&bed};
  ProgressLoop loop{work, failure, transports, 1, WaitMode::balanced};
  std::atomic<bool> called{false};
  std::thread waiter;
};

TEST_F(BackgroundThread, is_not_woken_by_the_steps_of_one_that_waits) {
  const auto begin = std::chrono::steady_clock::now();
  constexpr int kSleeps = 100;  // of a millisecond each
  for (int i = 0; i < kSleeps; ++i) loop.sleep_in_background(seconds(30));
  const auto slept = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(slept, kSleeps * std::chrono::microseconds(500)) << work.done << " steps";
  EXPECT_FALSE(loop.is_quiet());
  leave();
  EXPECT_TRUE(loop.is_quiet()) << "nothing is left for the background thread";
}

// Each sleep of the next three that did not end early would take 0.9 s.
constexpr std::chrono::milliseconds kLong{900};

TEST_F(BackgroundThread, does_not_sleep_beside_a_waiting_thread_once_it_was_called) {
  called = true;
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(loop.sleep_beside_waiters(kLong, called));
}

TEST_F(BackgroundThread, is_woken_when_it_is_called) {
  for (int i = 0; i < 100; ++i) {
    called = false;
    std::thread caller([&] {
      called = true;
      loop.wake_background();
    });
    EXPECT_TRUE(loop.sleep_beside_waiters(kLong, called));
    caller.join();
  }
}

TEST_F(BackgroundThread, is_woken_when_the_waiting_thread_leaves) {
  for (int i = 0; i < 100; ++i) {
    std::thread leaver([this] { work.end = true; });
    loop.sleep_beside_waiters(kLong, called);
    leaver.join();
    waiter.join();
    EXPECT_FALSE(loop.sleep_beside_waiters(kLong, called));
    wait_again();
  }
}

}  // namespace
}  // namespace anyccl::test
