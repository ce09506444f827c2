// The simulated driver with few hardware queues, and with full ones: what a program that relies on
// late work meets there.

#include <gtest/gtest.h>

#include <atomic>

#include "device/child.hpp"
#include "device/simulated.hpp"

namespace anyccl::test {
namespace {

const SimulatorSettings kOneQueuePerPriority = {{"CONNECTIONS", "1"}};
const SimulatorSettings kOneQueue = {{"CONNECTIONS", "1"}, {"ONE_PRIORITY", "1"}};
const SimulatorSettings kShortQueues = {{"DEPTH", "16"}};
constexpr int kUrgent = -5;

/// A stream waits for a word that a later call lets another stream write.
void run_late_work(int priority, bool hangs) {
  enter_device();
  auto* const word = pinned();
  const cuda::Stream waiting = make_stream(), writing = make_stream(1, priority);
  ASSERT_EQ(wait_for_one(waiting, word), cuda::kSuccess);
  ASSERT_EQ(write_one(writing, word), cuda::kSuccess);
  if (hangs) {
    EXPECT_TRUE(stays_undone(waiting));
    write_by_host(word, 1);
  }
  EXPECT_TRUE(becomes_done(waiting));
  EXPECT_TRUE(becomes_done(writing));
}

TEST(DriverConnections, let_late_work_hang_when_there_is_one) {
  expect_in_child(kOneQueuePerPriority, [] { run_late_work(0, true); });
}

TEST(DriverConnections, let_late_work_of_an_urgent_stream_through) {
  expect_in_child(kOneQueuePerPriority, [] { run_late_work(kUrgent, false); });
}

TEST(DriverConnections, let_late_work_of_an_urgent_stream_hang_when_there_is_one_in_all) {
  expect_in_child(kOneQueue, [] { run_late_work(kUrgent, true); });
}

TEST(DriverConnections, let_early_work_through_when_there_is_one_in_all) {
  expect_in_child(kOneQueue, [] {
    enter_device();
    auto* const word = pinned();
    const cuda::Stream waiting = make_stream(), writing = make_stream();
    cuda::Event event = nullptr;
    ASSERT_EQ(driver().cuEventCreate(&event, cuda::kEventDisableTiming), cuda::kSuccess);
    ASSERT_EQ(write_one(writing, word), cuda::kSuccess);
    ASSERT_EQ(driver().cuEventRecord(event, writing), cuda::kSuccess);
    ASSERT_EQ(driver().cuStreamWaitEvent(waiting, event, 0), cuda::kSuccess);
    EXPECT_TRUE(becomes_done(waiting));
  });
}

/// A program that puts work into a stream until its queue is full, in a thread.
class Program {
 public:
  static constexpr int kCalls = 100;
  Program(cuda::Stream stream, const std::uint32_t* word)
      : thread_([this, stream, word] {
          enter_device();
          for (int i = 0; i < kCalls; ++i) {
            EXPECT_EQ(write_one(stream, word), cuda::kSuccess);
            ++calls_;
          }
        }) {}
  ~Program() { thread_.join(); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  bool is_through() const { return calls_ == kCalls; }

 private:
  std::atomic<int> calls_{0};
  std::thread thread_;
};

TEST(DriverQueue, that_is_full_holds_up_calls_for_other_streams) {
  expect_in_child(kShortQueues, [] {
    enter_device();
    auto* const words = pinned();
    const cuda::Stream full = make_stream(), other = make_stream(1, kUrgent);
    ASSERT_EQ(wait_for_one(full, words), cuda::kSuccess);
    const Program program(full, words + 1);
    EXPECT_TRUE(stays_false([&] { return program.is_through(); }));
    std::atomic<bool> is_called{false};
    std::thread late([&] {
      enter_device();
      EXPECT_EQ(write_one(other, words), cuda::kSuccess);
      is_called = true;
    });
    EXPECT_TRUE(stays_false([&] { return is_called.load(); }));
    write_by_host(words, 1);
    EXPECT_TRUE(becomes_true([&] { return program.is_through() && is_called; }));
    late.join();
  });
}

TEST(DriverQueue, that_was_full_goes_on_when_the_work_was_early) {
  expect_in_child(kShortQueues, [] {
    enter_device();
    auto* const words = pinned();
    const cuda::Stream full = make_stream(), other = make_stream(1, kUrgent);
    ASSERT_EQ(write_one(other, words), cuda::kSuccess);
    ASSERT_EQ(wait_for_one(full, words), cuda::kSuccess);
    const Program program(full, words + 1);
    EXPECT_TRUE(becomes_true([&] { return program.is_through(); }));
  });
}

}  // namespace
}  // namespace anyccl::test
