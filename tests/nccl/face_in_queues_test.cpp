// The same with ANYCCL_DEVICE_QUEUES=1: a call returns when it is in the queues of its device.

#include <cstdlib>

#include "face_on_device.hpp"

namespace anyccl::test {
namespace {

/// A word of the device, which streams wait for.
class Word {
 public:
  Word() {
    EXPECT_EQ(cuda("cuMemAlloc_v2", &address_, std::size_t{4}), 0);
    EXPECT_EQ(cuda("cuStreamCreateWithPriority", &stream_, 1U, 0), 0);
    set(0);
    EXPECT_EQ(cuda("cuStreamSynchronize", stream_), 0);
  }
  ~Word() {
    EXPECT_EQ(cuda("cuStreamSynchronize", stream_), 0);
    EXPECT_EQ(cuda("cuMemFree_v2", address_), 0);
  }
  Word(const Word&) = delete;
  Word& operator=(const Word&) = delete;
  void set(unsigned int value) {
    EXPECT_EQ(cuda("cuStreamWriteValue32_v2", stream_, address_, value, 0U), 0);
  }
  /// Later work of the stream waits until it is 1.
  void hold(void* stream) {
    EXPECT_EQ(cuda("cuStreamWaitValue32_v2", stream, address_, 1U, 0U), 0);
  }

 private:
  Address address_ = 0;
  void* stream_ = nullptr;
};

class FaceInQueues : public FaceOnDevice {
 protected:
  void SetUp() override {
    ::setenv("ANYCCL_DEVICE_QUEUES", "1", 1);
    FaceOnDevice::SetUp();
  }
  void TearDown() override {
    FaceOnDevice::TearDown();
    ::unsetenv("ANYCCL_DEVICE_QUEUES");
  }

  /// In a group: all vectors become their sum.
  static void sum(ncclComm_t* comms, void** vectors, cudaStream_t first, cudaStream_t second) {
    ASSERT_NCCL(ncclGroupStart());
    for (int r = 0; r < 2; ++r)
      ASSERT_NCCL(ncclAllReduce(vectors[r], vectors[r], kCount, ncclFloat, ncclSum, comms[r],
                                r == 0 ? first : second));
    ASSERT_NCCL(ncclGroupEnd());
  }
};

TEST_F(FaceInQueues, groups_return_before_streams_come_to_them) {
  Word word;
  for (int r = 0; r < 2; ++r) word.hold(streams_[r]);
  for (int call = 0; call < 2; ++call) sum(comms_, vectors_, stream(0), stream(1));
  for (int r = 0; r < 2; ++r) EXPECT_NE(cuda("cuStreamQuery", streams_[r]), 0);
  word.set(1);
  for (int r = 0; r < 2; ++r) EXPECT_EQ(vector_of(r)[1], 2004.0F) << r;
}

TEST_F(FaceInQueues, ranks_of_one_device_may_have_one_stream) {
  for (const cudaStream_t one : {stream(0), cudaStream_t()}) {
    const float before = vector_of(0)[1] + vector_of(1)[1];
    sum(comms_, vectors_, one, one);
    ASSERT_EQ(cuda("cuStreamSynchronize", static_cast<void*>(one)), 0);
    for (int r = 0; r < 2; ++r) EXPECT_EQ(vector_of(r)[1], before) << r;
  }
}

TEST_F(FaceInQueues, communicators_that_are_made_of_one_with_queues_have_them) {
  ncclComm_t made[2] = {};
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  for (const int blocking : {1, 0}) {
    config.blocking = blocking;
    ASSERT_NCCL(ncclGroupStart());
    for (int r = 0; r < 2; ++r) {
      const ncclResult_t result = ncclCommSplit(comms_[r], 0, -r, &made[r], &config);
      ASSERT_TRUE(result == ncclSuccess || result == ncclInProgress);
    }
    ASSERT_NCCL(ncclGroupEnd());
    for (const ncclComm_t comm : made)
      for (ncclResult_t state = ncclInProgress; state == ncclInProgress;)
        ASSERT_NCCL(ncclCommGetAsyncError(comm, &state));
    Word word;
    for (int r = 0; r < 2; ++r) word.hold(streams_[r]);
    sum(made, vectors_, stream(0), stream(1));
    EXPECT_NE(cuda("cuStreamQuery", streams_[0]), 0);
    word.set(1);
    EXPECT_EQ(vector_of(0), vector_of(1));
    for (const ncclComm_t comm : made) EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
  }
}

TEST_F(FaceInQueues, all_ranks_that_one_call_makes_have_them) {
  ncclComm_t made[2] = {};
  const int devices[2] = {0, 1};
  ASSERT_NCCL(ncclCommInitAll(made, 2, devices));
  void* vectors[2] = {vectors_[0], nullptr};
  void *context = nullptr, *other = nullptr;
  ASSERT_EQ(cuda("cuCtxGetCurrent", &context), 0);
  ASSERT_EQ(cuda("cuDevicePrimaryCtxRetain", &other, 1), 0);
  ASSERT_EQ(cuda("cuCtxSetCurrent", other), 0);
  ASSERT_NCCL(ncclMemAlloc(&vectors[1], kCount * sizeof(float)));
  void* there = nullptr;
  ASSERT_EQ(cuda("cuStreamCreateWithPriority", &there, 1U, 0), 0);
  ASSERT_EQ(cuda("cuCtxSetCurrent", context), 0);
  Word word;
  word.hold(streams_[0]);
  const std::vector<float> zeros(kCount);
  ASSERT_EQ(cuda("cuMemcpyHtoDAsync_v2", reinterpret_cast<Address>(vectors[1]),
                 static_cast<const void*>(zeros.data()), kCount * sizeof(float), there),
            0);
  sum(made, vectors, stream(0), static_cast<cudaStream_t>(there));
  EXPECT_NE(cuda("cuStreamQuery", there), 0);
  word.set(1);
  EXPECT_EQ(vector_of(0)[1], 1.0F);
  EXPECT_EQ(cuda("cuStreamSynchronize", there), 0);
  for (const ncclComm_t comm : made) EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
  EXPECT_EQ(ncclMemFree(vectors[1]), ncclSuccess);
}

}  // namespace
}  // namespace anyccl::test
