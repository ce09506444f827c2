#pragma once
// Two ranks of one thread on one device, by NCCL's interface, on the simulated driver.

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>
#include <vector>

#include "nccl.h"

namespace anyccl::test {

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
    ::setenv("SIMULATED_CUDA_PAGEABLE", "1", 1);  // vectors of the host are not pinned here
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

}  // namespace anyccl::test
