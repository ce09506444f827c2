// The simulated driver: streams, events, capture, and functions of the host.

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <iterator>

#include "device/simulated.hpp"

namespace anyccl::test {
namespace {

constexpr cuda::Error kIllegalState = 401;
constexpr cuda::Error kNotPermitted = 800;

std::size_t threads_now() {
  const std::filesystem::directory_iterator threads("/proc/self/task");
  return static_cast<std::size_t>(std::distance(begin(threads), end(threads)));
}

TEST(DriverStream, that_waits_is_freed_by_later_work_of_another_one) {
  enter_device();
  auto* const word = pinned();
  const cuda::Stream waiting = make_stream(), other = make_stream();
  ASSERT_EQ(wait_for_one(waiting, word), cuda::kSuccess);
  ASSERT_EQ(write_one(other, word), cuda::kSuccess);
  EXPECT_TRUE(becomes_done(waiting));
}

TEST(DriverStream, waits_for_an_event_of_another_one) {
  enter_device();
  auto* const word = pinned();
  const cuda::Stream first = make_stream(), second = make_stream();
  cuda::Event event = nullptr;
  ASSERT_EQ(driver().cuEventCreate(&event, cuda::kEventDisableTiming), cuda::kSuccess);
  ASSERT_EQ(wait_for_one(first, word), cuda::kSuccess);
  ASSERT_EQ(driver().cuEventRecord(event, first), cuda::kSuccess);
  ASSERT_EQ(driver().cuStreamWaitEvent(second, event, 0), cuda::kSuccess);
  EXPECT_TRUE(stays_undone(second));
  EXPECT_EQ(driver().cuEventQuery(event), cuda::kNotReady);
  write_by_host(word, 1);
  EXPECT_TRUE(becomes_done(second));
  EXPECT_EQ(driver().cuEventQuery(event), cuda::kSuccess);
}

TEST(DriverStream, that_ignores_the_null_stream_is_not_held_up_by_it) {
  enter_device();
  auto* const word = pinned();
  const cuda::Stream other = make_stream(cuda::kStreamNonBlocking);
  ASSERT_EQ(wait_for_one(nullptr, word), cuda::kSuccess);
  ASSERT_EQ(write_one(other, word), cuda::kSuccess);
  EXPECT_TRUE(becomes_done(nullptr));
}

TEST(DriverStream, that_obeys_the_null_stream_is_held_up_by_it) {
  enter_device();
  auto* const word = pinned();
  const cuda::Stream other = make_stream(0);
  ASSERT_EQ(wait_for_one(nullptr, word), cuda::kSuccess);
  ASSERT_EQ(write_one(other, word), cuda::kSuccess);
  EXPECT_TRUE(stays_undone(nullptr));
  write_by_host(word, 1);
  EXPECT_TRUE(becomes_done(nullptr));
  EXPECT_TRUE(becomes_done(other));
}

TEST(DriverStream, that_is_destroyed_is_no_handle_any_more) {
  enter_device();
  const cuda::Stream stream = make_stream();
  EXPECT_EQ(driver().cuStreamDestroy_v2(stream), cuda::kSuccess);
  EXPECT_EQ(driver().cuStreamDestroy_v2(stream), cuda::kInvalidHandle);
  EXPECT_EQ(driver().cuStreamQuery(stream), cuda::kInvalidHandle);
  EXPECT_EQ(driver().cuStreamSynchronize(stream), cuda::kInvalidHandle);
  EXPECT_EQ(write_one(stream, pinned()), cuda::kInvalidHandle);
}

TEST(DriverStream, of_an_unknown_handle_is_not_destroyed) {
  enter_device();
  int nothing = 0;
  EXPECT_EQ(driver().cuStreamDestroy_v2(reinterpret_cast<cuda::Stream>(&nothing)),
            cuda::kInvalidHandle);
}

TEST(DriverStream, that_is_destroyed_still_does_its_work) {
  enter_device();
  auto* const words = pinned();
  const cuda::Stream stream = make_stream();
  ASSERT_EQ(wait_for_one(stream, words), cuda::kSuccess);
  ASSERT_EQ(write_one(stream, words + 1), cuda::kSuccess);
  ASSERT_EQ(driver().cuStreamDestroy_v2(stream), cuda::kSuccess);
  write_by_host(words, 1);
  EXPECT_TRUE(becomes_true([&] { return __atomic_load_n(words + 1, __ATOMIC_ACQUIRE) == 1; }));
}

TEST(DriverStream, that_is_destroyed_leaves_no_thread) {
  enter_device();
  const std::size_t before = threads_now();
  for (int i = 0; i < 20; ++i) ASSERT_EQ(driver().cuStreamDestroy_v2(make_stream()), 0);
  EXPECT_TRUE(becomes_true([&] { return threads_now() <= before; }));
}

TEST(DriverStream, waits_for_words_by_each_condition) {
  enter_device();
  auto* const word = pinned();
  *word = 6;
  const cuda::Stream stream = make_stream();
  const auto wait = [&](std::uint32_t value, unsigned condition) {
    return driver().cuStreamWaitValue32_v2(stream, address(word), value, condition);
  };
  EXPECT_EQ(wait(0xfffffff0U, cuda::kWaitGeq), cuda::kSuccess);  // cyclically
  EXPECT_EQ(wait(6, cuda::kWaitEq), cuda::kSuccess);
  EXPECT_EQ(wait(2, cuda::kWaitAnd), cuda::kSuccess);
  EXPECT_EQ(wait(1, cuda::kWaitNor), cuda::kSuccess);
  EXPECT_TRUE(becomes_done(stream));
}

TEST(DriverEvent, that_is_destroyed_is_no_handle_any_more) {
  enter_device();
  cuda::Event event = nullptr;
  ASSERT_EQ(driver().cuEventCreate(&event, 0), cuda::kSuccess);
  EXPECT_EQ(driver().cuEventDestroy_v2(event), cuda::kSuccess);
  EXPECT_EQ(driver().cuEventDestroy_v2(event), cuda::kInvalidHandle);
  EXPECT_EQ(driver().cuEventRecord(event, make_stream()), cuda::kInvalidHandle);
}

/// Functions of the host that wait, and that let them go on.
struct Gate {
  std::atomic<bool> open{false}, other_ran{false};
  static void wait(void* gate) {
    while (!static_cast<Gate*>(gate)->open) std::this_thread::yield();
  }
  static void pass(void* gate) { static_cast<Gate*>(gate)->other_ran = true; }
};

TEST(DriverFunction, that_waits_holds_up_the_functions_of_other_streams) {
  enter_device();
  const cuda::Stream first = make_stream(), second = make_stream();
  Gate gate;
  std::atomic<bool> has_begun{false};
  struct Both {
    Gate& gate;
    std::atomic<bool>& has_begun;
  } both{gate, has_begun};
  const auto begin = [](void* at) {
    static_cast<Both*>(at)->has_begun = true;
    Gate::wait(&static_cast<Both*>(at)->gate);
  };
  ASSERT_EQ(driver().cuLaunchHostFunc(first, begin, &both), cuda::kSuccess);
  ASSERT_TRUE(becomes_true([&] { return has_begun.load(); }));
  ASSERT_EQ(driver().cuLaunchHostFunc(second, Gate::pass, &gate), cuda::kSuccess);
  EXPECT_TRUE(stays_false([&] { return gate.other_ran.load(); }));
  gate.open = true;
  EXPECT_TRUE(becomes_done(first));
  EXPECT_TRUE(becomes_done(second));
  EXPECT_TRUE(gate.other_ran);
}

TEST(DriverFunction, makes_no_call_that_uses_the_device) {
  enter_device();
  struct Results {
    cuda::Error allocation = -1, query = -1;
  } results;
  const auto call = [](void* at) {
    auto& all = *static_cast<Results*>(at);
    cuda::Address memory = 0;
    all.allocation = driver().cuMemAlloc_v2(&memory, 64);
    all.query = driver().cuStreamQuery(nullptr);
  };
  const cuda::Stream stream = make_stream();
  ASSERT_EQ(driver().cuLaunchHostFunc(stream, call, &results), cuda::kSuccess);
  ASSERT_EQ(driver().cuStreamSynchronize(stream), cuda::kSuccess);
  EXPECT_EQ(results.allocation, kNotPermitted);
  EXPECT_EQ(results.query, kNotPermitted);
}

TEST(DriverCapture, is_seen_in_its_stream_alone) {
  enter_device();
  const cuda::Stream stream = make_stream(), other = make_stream();
  int status = 7;
  void* graph = nullptr;
  ASSERT_EQ(driver().cuStreamBeginCapture_v2(stream, 0), cuda::kSuccess);
  EXPECT_EQ(driver().cuStreamBeginCapture_v2(stream, 0), kIllegalState);
  EXPECT_EQ(driver().cuStreamIsCapturing(stream, &status), cuda::kSuccess);
  EXPECT_EQ(status, 1);
  EXPECT_EQ(driver().cuStreamIsCapturing(other, &status), cuda::kSuccess);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(driver().cuStreamIsCapturing(nullptr, &status), cuda::kSuccess);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(driver().cuStreamEndCapture(stream, &graph), cuda::kSuccess);
  EXPECT_EQ(driver().cuStreamEndCapture(stream, &graph), kIllegalState);
}

TEST(DriverCapture, refuses_work_and_nothing_else) {
  enter_device();
  auto* const word = pinned();
  const cuda::Stream stream = make_stream(), other = make_stream();
  int status = 0;
  void* graph = nullptr;
  ASSERT_EQ(driver().cuStreamBeginCapture_v2(stream, 0), cuda::kSuccess);
  EXPECT_EQ(write_one(stream, word), cuda::kCaptureUnsupported);
  EXPECT_EQ(driver().cuStreamQuery(stream), cuda::kCaptureUnsupported);
  EXPECT_EQ(write_one(other, word), cuda::kSuccess);
  EXPECT_EQ(write_one(nullptr, word), cuda::kSuccess);
  EXPECT_EQ(driver().cuStreamIsCapturing(stream, &status), cuda::kSuccess);
  EXPECT_EQ(status, 1);
  EXPECT_EQ(driver().cuStreamEndCapture(stream, &graph), cuda::kSuccess);
  EXPECT_EQ(write_one(stream, word), cuda::kSuccess);
}

TEST(DriverCapture, of_a_stream_that_obeys_the_null_stream_makes_that_one_fail) {
  enter_device();
  const cuda::Stream stream = make_stream(0);
  int status = 0;
  void* graph = nullptr;
  ASSERT_EQ(driver().cuStreamBeginCapture_v2(stream, 0), cuda::kSuccess);
  EXPECT_EQ(driver().cuStreamIsCapturing(nullptr, &status), cuda::kCaptureImplicit);
  EXPECT_EQ(write_one(nullptr, pinned()), cuda::kCaptureImplicit);
  EXPECT_EQ(driver().cuStreamEndCapture(stream, &graph), cuda::kSuccess);
  EXPECT_EQ(driver().cuStreamIsCapturing(nullptr, &status), cuda::kSuccess);
}

TEST(DriverCapture, of_the_null_stream_is_refused) {
  enter_device();
  EXPECT_EQ(driver().cuStreamBeginCapture_v2(nullptr, 0), cuda::kCaptureUnsupported);
}

}  // namespace
}  // namespace anyccl::test
