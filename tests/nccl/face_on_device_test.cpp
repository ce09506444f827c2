// A program for NCCL with its vectors on devices, on libnccl.so.2 and the simulated driver.

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "nccl.h"

namespace {

constexpr std::size_t kCount = 1000;
using Address = unsigned long long;  // CUdeviceptr

/// Calls a function of the driver, which such a program has loaded.
template <typename... Parameters>
int cuda(const char* name, Parameters... parameters) {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  const auto function = reinterpret_cast<int (*)(Parameters...)>(dlsym(library, name));
  return function == nullptr ? -1 : function(parameters...);
}

#define ASSERT_NCCL(...) ASSERT_EQ(__VA_ARGS__, ncclSuccess) << ncclGetLastError(nullptr)

/// Two ranks of this thread on one device, each with a stream and a vector there.
class FaceOnDevice : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NCCL(ncclCommInitAll(&of_host_, 1, nullptr));
    void* context = nullptr;
    ASSERT_EQ(cuda("cuInit", 0U), 0);
    ASSERT_EQ(cuda("cuDevicePrimaryCtxRetain", &context, 0), 0);
    ASSERT_EQ(cuda("cuCtxSetCurrent", context), 0);
    ncclUniqueId id;
    ASSERT_NCCL(ncclGetUniqueId(&id));
    ASSERT_NCCL(ncclGroupStart());
    for (int r = 0; r < 2; ++r) ASSERT_NCCL(ncclCommInitRank(&comms_[r], 2, id, r));
    ASSERT_NCCL(ncclGroupEnd());
    for (int r = 0; r < 2; ++r) {
      ASSERT_NCCL(ncclMemAlloc(&vectors_[r], kCount * sizeof(float)));
      ASSERT_EQ(cuda("cuStreamCreateWithPriority", &streams_[r], 1U, 0), 0);
      std::vector<float> x(kCount);
      std::iota(x.begin(), x.end(), 1000.0F * static_cast<float>(r));
      ASSERT_EQ(cuda("cuMemcpyHtoDAsync_v2", address(r), static_cast<const void*>(x.data()),
                     kCount * sizeof(float), streams_[r]),
                0);
    }
  }
  void TearDown() override {
    for (int r = 0; r < 2; ++r) EXPECT_EQ(ncclMemFree(vectors_[r]), ncclSuccess);
    EXPECT_EQ(ncclGroupStart(), ncclSuccess);
    for (ncclComm_t comm : comms_) EXPECT_EQ(ncclCommFinalize(comm), ncclSuccess);
    EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
    for (ncclComm_t comm : comms_) EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
    EXPECT_EQ(ncclCommDestroy(of_host_), ncclSuccess);
    EXPECT_EQ(cuda("cuCtxSetCurrent", static_cast<void*>(nullptr)), 0);
  }

  cudaStream_t stream(int rank) const { return static_cast<cudaStream_t>(streams_[rank]); }
  Address address(int rank) const { return reinterpret_cast<Address>(vectors_[rank]); }
  std::vector<float> vector_of(int rank) const {
    std::vector<float> x(kCount);
    EXPECT_EQ(cuda("cuMemcpyDtoHAsync_v2", static_cast<void*>(x.data()), address(rank),
                   kCount * sizeof(float), streams_[rank]),
              0);
    EXPECT_EQ(cuda("cuStreamSynchronize", streams_[rank]), 0);
    return x;
  }

  ncclComm_t of_host_ = nullptr;  // made before the program used a device
  ncclComm_t comms_[2] = {};
  void* vectors_[2] = {};
  void* streams_[2] = {};
};

TEST_F(FaceOnDevice, an_all_reduce_of_each_stream_and_of_the_default_one_is_right) {
  for (const float times : {1.0F, 2.0F}) {
    ASSERT_NCCL(ncclGroupStart());
    for (int r = 0; r < 2; ++r)
      ASSERT_NCCL(ncclAllReduce(vectors_[r], vectors_[r], kCount, ncclFloat, ncclSum, comms_[r],
                                times == 1.0F ? stream(r) : nullptr));
    ASSERT_NCCL(ncclGroupEnd());
    for (int r = 0; r < 2; ++r) {
      const std::vector<float> x = vector_of(r);
      for (std::size_t i = 0; i < kCount; ++i)
        ASSERT_EQ(x[i], times * (1000.0F + 2.0F * static_cast<float>(i))) << r << " " << i;
    }
  }
}

TEST_F(FaceOnDevice, a_message_goes_from_device_to_device) {
  ASSERT_NCCL(ncclGroupStart());
  ASSERT_NCCL(ncclSend(vectors_[0], kCount, ncclFloat, 1, comms_[0], stream(0)));
  ASSERT_NCCL(ncclRecv(vectors_[1], kCount, ncclFloat, 0, comms_[1], stream(1)));
  ASSERT_NCCL(ncclGroupEnd());
  EXPECT_EQ(vector_of(1), vector_of(0));
}

TEST_F(FaceOnDevice, a_scalar_and_a_window_on_the_device_are_refused) {
  ncclRedOp_t op;
  EXPECT_EQ(ncclRedOpCreatePreMulSum(&op, vectors_[0], ncclFloat, ncclScalarDevice, comms_[0]),
            ncclInvalidUsage);
  ncclWindow_t windows[2] = {};
  ASSERT_NCCL(ncclGroupStart());
  for (int r = 0; r < 2; ++r)
    ASSERT_NCCL(ncclCommWindowRegister(comms_[r], vectors_[r], 4000, &windows[r], 0));
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
}

TEST_F(FaceOnDevice, a_stream_is_refused_by_a_communicator_without_a_device) {
  float x = 1;
  EXPECT_EQ(ncclAllReduce(&x, &x, 1, ncclFloat, ncclSum, of_host_, stream(0)), ncclInvalidArgument);
  EXPECT_EQ(ncclAllReduce(&x, &x, 1, ncclFloat, ncclSum, of_host_, nullptr), ncclSuccess);
}

}  // namespace
