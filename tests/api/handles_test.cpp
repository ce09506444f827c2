// Handles that are used after they were given back.

#include <algorithm>
#include <atomic>
#include <thread>

#include "support/streams.hpp"
#include "support/usage.hpp"

namespace anyccl::test {
namespace {

void expect_error(anycclResult_t got, anycclResult_t want, const std::string& words) {
  EXPECT_EQ(got, want);
  const std::string text = anycclGetLastError(nullptr);
  EXPECT_NE(text.find(words), std::string::npos) << text;
}

anycclComm_t single_rank() {
  anycclComm_t comm = nullptr;
  EXPECT_EQ(anycclCommInitAll(&comm, 1, nullptr), anycclSuccess);
  return comm;
}

TEST(Handles, of_a_destroyed_communicator_say_so) {
  const anycclComm_t comm = single_rank();
  ASSERT_EQ(anycclCommDestroy(comm), anycclSuccess);
  const std::string words = "the communicator was destroyed";
  float x = 1;
  int count = 0;
  anycclResult_t state = anycclSuccess;
  anycclComm_t part = nullptr;
  anycclWork_t work = nullptr;
  const anycclCall_t call = call_of(anycclCollAllReduce, {&x, 1});
  expect_error(anycclAllReduce(&x, &x, 1, anycclFloat32, anycclSum, comm, nullptr),
               anycclInvalidUsage, words);
  expect_error(anycclIssue(&call, comm, &work), anycclInvalidUsage, words);
  expect_error(anycclCommCount(comm, &count), anycclInvalidUsage, words);
  expect_error(anycclCommSplit(comm, 0, 0, &part, nullptr), anycclInvalidUsage, words);
  expect_error(anycclCommFinalize(comm), anycclInvalidUsage, words);
  expect_error(anycclCommDestroy(comm), anycclInvalidUsage, words);
  expect_error(anycclCommAbort(comm), anycclInvalidUsage, words);
  EXPECT_EQ(anycclCommGetAsyncError(comm, &state), anycclSuccess);
  EXPECT_EQ(state, anycclInvalidUsage);
  EXPECT_NE(std::string(anycclGetLastError(comm)).find(words), std::string::npos);
}
TEST(Handles, of_an_aborted_communicator_say_so) {
  const anycclComm_t comm = single_rank();
  ASSERT_EQ(anycclCommAbort(comm), anycclSuccess);
  expect_error(anycclBarrier(comm, nullptr), anycclAborted, "the communicator was aborted");
  expect_error(anycclCommAbort(comm), anycclAborted, "the communicator was aborted");
  expect_error(anycclCommDestroy(comm), anycclAborted, "the communicator was aborted");
}
TEST(Handles, of_a_finalized_communicator_can_be_destroyed_once) {
  const anycclComm_t comm = single_rank();
  ASSERT_EQ(anycclCommFinalize(comm), anycclSuccess);
  ASSERT_EQ(anycclCommDestroy(comm), anycclSuccess);
  expect_error(anycclCommDestroy(comm), anycclInvalidUsage, "the communicator was destroyed");
}
TEST(Handles, that_are_destroyed_in_a_group_are_errors_of_what_comes_at_its_end) {
  const anycclComm_t comm = single_rank();
  ASSERT_EQ(anycclGroupStart(), anycclSuccess);
  ASSERT_EQ(anycclCommFinalize(comm), anycclSuccess);
  ASSERT_EQ(anycclCommDestroy(comm), anycclSuccess);
  expect_error(anycclGroupEnd(), anycclInvalidUsage, "the communicator was destroyed");
}
TEST(Handles, that_one_thread_destroys_can_be_aborted_by_another) {
  for (int round = 0; round < 20; ++round) {
    anycclComm_t comms[2] = {};
    ASSERT_EQ(anycclCommInitAll(comms, 2, nullptr), anycclSuccess);
    float x = 0;
    anycclWork_t work = nullptr;
    const anycclCall_t call = call_of(anycclCollRecv, {&x, 1}, 1);
    ASSERT_EQ(anycclIssue(&call, comms[0], &work), anycclSuccess);  // nobody sends
    std::thread destroying([&] {
      const anycclResult_t result = anycclCommDestroy(comms[0]);
      EXPECT_TRUE(result == anycclSuccess || result == anycclAborted ||
                  result == anycclInvalidUsage);
    });
    const anycclResult_t result = anycclCommAbort(comms[0]);
    EXPECT_EQ(result, anycclSuccess);
    destroying.join();
    EXPECT_EQ(anycclWorkWait(work), anycclAborted);
    EXPECT_EQ(anycclWorkFree(work), anycclSuccess);
    EXPECT_EQ(anycclCommAbort(comms[1]), anycclSuccess);
  }
}
/// Two ranks of this process.
struct Pair {
  Pair() { EXPECT_EQ(anycclCommInitAll(comms, 2, nullptr), anycclSuccess); }
  anycclComm_t comms[2] = {};
};

/// Calls what there is on a communicator until it has come to its end; the last result.
anycclResult_t call_until_the_end(anycclComm_t comm, std::atomic<int>& calls) {
  float x[2] = {1, 1};
  int count = 0;
  anycclResult_t result = anycclSuccess;
  while (result == anycclSuccess) {
    result = anycclAllReduce(x, x, 1, anycclFloat32, anycclMax, comm, nullptr);
    if (result == anycclSuccess) result = anycclCommCount(comm, &count);
    ++calls;
  }
  EXPECT_NE(std::string(anycclGetLastError(nullptr)), "");
  return result;
}

TEST(Handles, that_are_aborted_while_other_threads_call_say_so) {
  for (int round = 0; round < 20; ++round) {
    const Pair pair;
    std::atomic<int> calls{0};
    std::vector<std::thread> threads;
    for (const anycclComm_t comm : {pair.comms[0], pair.comms[1]})
      for (int i = 0; i < 2; ++i)
        threads.emplace_back(
            [&calls, comm] { EXPECT_EQ(call_until_the_end(comm, calls), anycclAborted); });
    while (calls < 8) std::this_thread::yield();
    EXPECT_EQ(anycclCommAbort(pair.comms[0]), anycclSuccess);
    EXPECT_EQ(anycclCommAbort(pair.comms[1]), anycclSuccess);
    for (std::thread& thread : threads) thread.join();
  }
}
TEST(Handles, that_are_destroyed_while_other_threads_call_say_so) {
  for (int round = 0; round < 20; ++round) {
    const anycclComm_t comm = single_rank();
    std::atomic<int> calls{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i)
      threads.emplace_back([&] { EXPECT_EQ(call_until_the_end(comm, calls), anycclInvalidUsage); });
    while (calls < 6) std::this_thread::yield();
    EXPECT_EQ(anycclCommDestroy(comm), anycclSuccess);
    for (std::thread& thread : threads) thread.join();
  }
}
/// What four threads at once get of `end`.
std::vector<anycclResult_t> end_at_once(anycclResult_t (*end)(anycclComm_t), anycclComm_t comm) {
  std::vector<anycclResult_t> results(4);
  std::vector<std::thread> threads;
  std::atomic<std::size_t> ready{0};
  for (anycclResult_t& result : results)
    threads.emplace_back([&] {
      for (++ready; ready < results.size();) std::this_thread::yield();
      result = end(comm);
    });
  for (std::thread& thread : threads) thread.join();
  return results;
}
TEST(Handles, that_several_threads_end_at_once_are_ended_by_one_of_them) {
  for (int round = 0; round < 20; ++round) {
    const anycclComm_t comm = single_rank();
    for (const auto end : {anycclCommFinalize, anycclCommDestroy}) {
      const auto results = end_at_once(end, comm);
      EXPECT_EQ(std::count(results.begin(), results.end(), anycclSuccess), 1);
      EXPECT_EQ(std::count(results.begin(), results.end(), anycclInvalidUsage), 3);
    }
  }
}
TEST(Handles, that_several_threads_abort_at_once_are_aborted) {
  for (int round = 0; round < 20; ++round) {
    const auto results = end_at_once(anycclCommAbort, single_rank());
    EXPECT_GE(std::count(results.begin(), results.end(), anycclSuccess), 1);
    for (const anycclResult_t result : results)
      EXPECT_TRUE(result == anycclSuccess || result == anycclAborted) << result;
  }
}
/// A function of the program keeps the call for as long as it likes.
struct LongCall {
  std::atomic<int> began{0};
  std::atomic<bool> ends{false};
};
void wait_for_end(const void*, void*, std::size_t, anycclDataType_t, void* call) {
  auto& mine = *static_cast<LongCall*>(call);
  for (++mine.began; !mine.ends;) std::this_thread::yield();
}
TEST(Handles, that_are_aborted_during_a_function_of_the_program_say_so_and_wait_for_it) {
  const Pair pair;
  LongCall call;
  std::vector<std::thread> threads;
  for (const anycclComm_t comm : pair.comms)
    threads.emplace_back([&, comm] {
      float x = 1;
      anycclRedOp_t op{};
      EXPECT_EQ(anycclRedOpCreate(&op, wait_for_end, &call, comm), anycclSuccess);
      static_cast<void>(anycclAllReduce(&x, &x, 1, anycclFloat32, op, comm, nullptr));
    });
  while (call.began < 2) std::this_thread::yield();
  for (const anycclComm_t comm : pair.comms)
    threads.emplace_back([comm] { EXPECT_EQ(anycclCommAbort(comm), anycclSuccess); });
  for (const anycclComm_t comm : pair.comms)
    while (anycclCommUserRank(comm, nullptr) != anycclAborted) std::this_thread::yield();
  call.ends = true;
  for (std::thread& thread : threads) thread.join();
  expect_error(anycclBarrier(pair.comms[1], nullptr), anycclAborted, "was aborted");
}
TEST(Handles, whose_creation_is_aborted_leave_nothing) {
  anycclConfig_t config = ANYCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  const auto abort_one = [&] {
    anycclUniqueId id;
    anycclComm_t comm = nullptr;
    EXPECT_EQ(anycclGetUniqueId(&id), anycclSuccess);
    EXPECT_EQ(anycclCommInitRankConfig(&comm, 2, id, 0, &config), anycclInProgress);
    EXPECT_EQ(anycclCommAbort(comm), anycclSuccess);
    return comm;
  };
  const std::ptrdiff_t threads_before = threads(), descriptors_before = descriptors();
  anycclComm_t last = nullptr;
  for (int i = 0; i < 5; ++i) last = abort_one();
  EXPECT_LE(threads(threads_before), threads_before);
  EXPECT_LE(descriptors(descriptors_before), descriptors_before);
  const char* const words = "the communicator was aborted";  // also when its creation has ended
  anycclResult_t state = anycclSuccess;
  EXPECT_EQ(anycclCommGetAsyncError(last, &state), anycclSuccess);
  EXPECT_EQ(state, anycclAborted);
  expect_error(anycclBarrier(last, nullptr), anycclAborted, words);
  expect_error(anycclCommAbort(last), anycclAborted, words);
}
TEST(Handles, of_communicators_say_that_they_have_no_device) {
  anycclComm_t comm = nullptr;
  ASSERT_EQ(anycclCommInitAll(&comm, 1, nullptr), anycclSuccess);
  int device = 7;
  EXPECT_EQ(anycclCommGetDevice(comm, &device), anycclSuccess);
  EXPECT_EQ(device, ANYCCL_NO_DEVICE);
  expect_error(anycclCommGetDevice(comm, nullptr), anycclInvalidArgument, "device is NULL");
  EXPECT_EQ(anycclCommDestroy(comm), anycclSuccess);
}

TEST(Handles, of_destroyed_streams_and_events_say_so) {
  anycclStream_t stream = nullptr;
  anycclEvent_t event = nullptr;
  ASSERT_EQ(anycclStreamCreate(&stream), anycclSuccess);
  ASSERT_EQ(anycclEventCreate(&event), anycclSuccess);
  ASSERT_EQ(anycclEventRecord(event, stream), anycclSuccess);
  ASSERT_EQ(anycclStreamDestroy(stream), anycclSuccess);
  ASSERT_EQ(anycclEventDestroy(event), anycclSuccess);
  const std::string words = " was destroyed";
  expect_error(anycclStreamSynchronize(stream), anycclInvalidUsage, "the stream" + words);
  expect_error(anycclStreamQuery(stream), anycclInvalidUsage, "the stream" + words);
  expect_error(anycclStreamDestroy(stream), anycclInvalidUsage, "the stream" + words);
  expect_error(anycclEventSynchronize(event), anycclInvalidUsage, "the event" + words);
  expect_error(anycclEventDestroy(event), anycclInvalidUsage, "the event" + words);
  float ms = 0;
  expect_error(anycclEventElapsedTime(&ms, event, event), anycclInvalidUsage,
               "the start event" + words);
}

}  // namespace
}  // namespace anyccl::test
