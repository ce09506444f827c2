// Handles that are used after they were given back.

#include <thread>

#include "support/streams.hpp"

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
