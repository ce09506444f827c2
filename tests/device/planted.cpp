// Races that ThreadSanitizer must find in a program that uses the simulated driver: ctests start
// these cases by name and expect its report. None of them is a race of the driver.

#include <gtest/gtest.h>

#include "device/simulated.hpp"

namespace anyccl::test {
namespace {

constexpr std::size_t kBytes = 1000;

TEST(PlantedOnDevice, stream_that_does_not_wait_for_another) {
  enter_device();
  auto* const host = pinned<unsigned char>();
  const cuda::Address at = allocate(kBytes);
  const cuda::Stream first = make_stream(), second = make_stream();
  EXPECT_EQ(driver().cuMemcpyHtoDAsync_v2(at, host, kBytes, first), cuda::kSuccess);
  EXPECT_EQ(driver().cuMemcpyDtoHAsync_v2(host + kBytes, at, kBytes, second), cuda::kSuccess);
  EXPECT_EQ(driver().cuCtxSynchronize(), cuda::kSuccess);
}

TEST(PlantedOnDevice, host_that_overwrites_what_is_copied) {
  enter_device();
  auto* const host = pinned<unsigned char>();
  const cuda::Stream stream = make_stream();
  EXPECT_EQ(driver().cuMemcpyHtoDAsync_v2(allocate(kBytes), host, kBytes, stream), cuda::kSuccess);
  host[0] = 1;
  EXPECT_EQ(driver().cuStreamSynchronize(stream), cuda::kSuccess);
}

TEST(PlantedOnDevice, host_that_reads_too_early) {
  enter_device();
  auto* const host = pinned<unsigned char>();
  const cuda::Stream stream = make_stream();
  EXPECT_EQ(driver().cuMemcpyDtoHAsync_v2(host, allocate(kBytes), kBytes, stream), cuda::kSuccess);
  EXPECT_EQ(host[0], 0);
  EXPECT_EQ(driver().cuStreamSynchronize(stream), cuda::kSuccess);
}

}  // namespace
}  // namespace anyccl::test
