// The simulated driver: memory, copies and modelled time.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <vector>

#include "device/simulated.hpp"

namespace anyccl::test {
namespace {

struct Facts {
  unsigned type = 7;
  int device = 7;
  cuda::Address begin = 7;
  std::size_t bytes = 7;
};

Facts facts_of(cuda::Address at) {
  Facts facts;
  int attributes[] = {cuda::kMemoryType, cuda::kDeviceOrdinal, cuda::kRangeStart, cuda::kRangeSize};
  void* values[] = {&facts.type, &facts.device, &facts.begin, &facts.bytes};
  EXPECT_EQ(driver().cuPointerGetAttributes(4, attributes, values, at), cuda::kSuccess);
  return facts;
}

void expect_unknown(cuda::Address at) {
  const Facts facts = facts_of(at);
  EXPECT_EQ(facts.type, 0U);
  EXPECT_EQ(facts.device, 0);
  EXPECT_EQ(facts.begin, 0U);
  EXPECT_EQ(facts.bytes, 0U);
}

TEST(DriverMemory, of_a_device_has_attributes_that_name_its_allocation) {
  enter_device(1);
  const cuda::Address at = allocate(1000);
  const Facts facts = facts_of(at + 999);
  EXPECT_EQ(facts.type, cuda::kTypeDevice);
  EXPECT_EQ(facts.device, 1);
  EXPECT_EQ(facts.begin, at);
  EXPECT_EQ(facts.bytes, 1000U);
  EXPECT_EQ(driver().cuMemFree_v2(at), cuda::kSuccess);
}

TEST(DriverMemory, that_is_unknown_has_attributes_of_zero) {
  enter_device();
  const int own = 0;
  expect_unknown(address(&own));
}

TEST(DriverMemory, that_was_freed_is_unknown) {
  enter_device();
  const cuda::Address at = allocate(1000);
  ASSERT_EQ(driver().cuMemFree_v2(at), cuda::kSuccess);
  expect_unknown(at);
}

TEST(DriverMemory, is_freed_once) {
  enter_device();
  const cuda::Address at = allocate(64);
  EXPECT_EQ(driver().cuMemFree_v2(at), cuda::kSuccess);
  EXPECT_EQ(driver().cuMemFree_v2(at), cuda::kInvalidValue);
}

TEST(DriverMemory, is_free_as_far_as_it_is_not_allocated) {
  enter_device();
  std::size_t before = 0, during = 0, after = 0, all = 0;
  EXPECT_EQ(driver().cuMemGetInfo_v2(&before, &all), cuda::kSuccess);
  const cuda::Address at = allocate(10 * 4096);
  EXPECT_EQ(driver().cuMemGetInfo_v2(&during, &all), cuda::kSuccess);
  EXPECT_EQ(driver().cuMemFree_v2(at), cuda::kSuccess);
  EXPECT_EQ(driver().cuMemGetInfo_v2(&after, &all), cuda::kSuccess);
  EXPECT_EQ(during, before - 10 * 4096);
  EXPECT_EQ(after, before);
}

TEST(DriverMemory, of_a_mapping_that_cannot_be_written_is_not_pinned_for_writing) {
  enter_device();
  EXPECT_EQ(pin(map_page(PROT_READ)), cuda::kInvalidValue);
}

TEST(DriverMemory, of_a_mapping_that_cannot_be_written_is_pinned_for_reading) {
  enter_device();
  EXPECT_EQ(pin(map_page(PROT_READ), cuda::kRegisterReadOnly), cuda::kSuccess);
}

TEST(DriverMemory, that_is_pinned_for_reading_is_not_written_by_a_device) {
  enter_device();
  void* const page = map_page(PROT_READ);
  ASSERT_EQ(pin(page, cuda::kRegisterReadOnly), cuda::kSuccess);
  const cuda::Stream stream = make_stream();
  EXPECT_EQ(driver().cuMemcpyAsync(address(page), allocate(64), 64, stream), cuda::kInvalidValue);
  EXPECT_EQ(write_one(stream, static_cast<std::uint32_t*>(page)), cuda::kInvalidValue);
}

TEST(DriverMemory, is_pinned_and_unpinned_once) {
  enter_device();
  void* const page = map_page();
  EXPECT_EQ(driver().cuMemHostUnregister(page), cuda::kNotRegistered);
  EXPECT_EQ(pin(page), cuda::kSuccess);
  EXPECT_EQ(pin(page), cuda::kAlreadyRegistered);
  EXPECT_EQ(driver().cuMemHostUnregister(page), cuda::kSuccess);
  EXPECT_EQ(driver().cuMemHostUnregister(page), cuda::kNotRegistered);
}

TEST(DriverMemory, of_the_host_is_allocated_pinned) {
  enter_device();
  void* at = nullptr;
  ASSERT_EQ(driver().cuMemHostAlloc(&at, 1000, 0), cuda::kSuccess);
  EXPECT_EQ(facts_of(address(at) + 999).type, cuda::kTypeHost);
  EXPECT_EQ(driver().cuMemFreeHost(at), cuda::kSuccess);
  expect_unknown(address(at));
}

TEST(DriverCopy, brings_bytes_to_a_device_and_between_devices_and_back) {
  enter_device(1);
  const cuda::Address there = allocate(1000);
  enter_device(0);
  const cuda::Address here = allocate(1000);
  auto* const host = pinned<unsigned char>();
  for (int i = 0; i < 1000; ++i) host[i] = static_cast<unsigned char>(i);
  const cuda::Stream stream = make_stream();
  EXPECT_EQ(driver().cuMemcpyHtoDAsync_v2(here, host, 1000, stream), cuda::kSuccess);
  EXPECT_EQ(driver().cuMemcpyDtoDAsync_v2(there, here, 1000, stream), cuda::kSuccess);
  EXPECT_EQ(driver().cuMemcpyDtoHAsync_v2(host + 1000, there, 1000, stream), cuda::kSuccess);
  ASSERT_TRUE(becomes_done(stream));
  EXPECT_TRUE(std::equal(host, host + 1000, host + 1000));
}

TEST(DriverCopy, of_memory_that_is_not_pinned_is_refused) {
  enter_device();
  const char own[64] = {};
  EXPECT_EQ(driver().cuMemcpyHtoDAsync_v2(allocate(64), own, 64, make_stream()),
            cuda::kInvalidValue);
}

TEST(DriverCopy, beyond_the_end_of_an_allocation_is_refused) {
  enter_device();
  EXPECT_EQ(driver().cuMemcpyAsync(allocate(64), allocate(128), 65, make_stream()),
            cuda::kInvalidValue);
}

TEST(DriverCopy, that_was_queued_before_its_memory_is_freed_is_done) {
  enter_device();
  const cuda::Stream stream = make_stream();
  auto* const words = pinned();
  words[1] = 42;
  const cuda::Address at = allocate(64);
  ASSERT_EQ(wait_for_one(stream, words), cuda::kSuccess);
  ASSERT_EQ(driver().cuMemcpyHtoDAsync_v2(at, words + 1, 4, stream), cuda::kSuccess);
  ASSERT_EQ(driver().cuMemcpyDtoHAsync_v2(words + 2, at, 4, stream), cuda::kSuccess);
  std::atomic<bool> is_freed{false};
  std::thread other([&] {
    enter_device();
    EXPECT_EQ(driver().cuMemFree_v2(at), cuda::kSuccess);
    is_freed = true;
  });
  EXPECT_TRUE(stays_false([&] { return is_freed.load(); }));
  write_by_host(words, 1);
  other.join();
  EXPECT_TRUE(is_freed);
  EXPECT_EQ(words[2], 42U);
}

TEST(DriverCopy, is_waited_for_by_a_free_when_its_stream_is_destroyed) {
  enter_device();
  const cuda::Stream stream = make_stream();
  auto* const words = pinned();
  const cuda::Address at = allocate(64);
  ASSERT_EQ(wait_for_one(stream, words), cuda::kSuccess);
  ASSERT_EQ(driver().cuMemsetD8Async(at, 1, 64, stream), cuda::kSuccess);
  ASSERT_EQ(driver().cuMemcpyDtoHAsync_v2(words + 2, at, 4, stream), cuda::kSuccess);
  ASSERT_EQ(driver().cuStreamDestroy_v2(stream), cuda::kSuccess);
  std::thread other([&] { write_by_host(words, 1); });
  EXPECT_EQ(driver().cuMemFree_v2(at), cuda::kSuccess);
  other.join();
  EXPECT_EQ(words[2], 0x01010101U);
}

TEST(DriverTime, of_a_copy_is_that_of_the_model) {
  enter_device();
  driver_function<void()>("anyccl_sim_reset")();
  void* host = nullptr;
  constexpr std::size_t kBytes = 2'600'000;
  ASSERT_EQ(driver().cuMemHostAlloc(&host, kBytes, 0), cuda::kSuccess);
  const cuda::Address at = allocate(kBytes);
  const cuda::Stream stream = make_stream();
  cuda::Event before = nullptr, after = nullptr;
  ASSERT_EQ(driver().cuEventCreate(&before, 0), cuda::kSuccess);
  ASSERT_EQ(driver().cuEventCreate(&after, 0), cuda::kSuccess);
  ASSERT_EQ(driver().cuEventRecord(before, stream), cuda::kSuccess);
  ASSERT_EQ(driver().cuMemcpyHtoDAsync_v2(at, host, kBytes, stream), cuda::kSuccess);
  ASSERT_EQ(driver().cuEventRecord(after, stream), cuda::kSuccess);
  ASSERT_EQ(driver().cuEventSynchronize(after), cuda::kSuccess);
  float ms = 0;
  ASSERT_EQ(driver().cuEventElapsedTime_v2(&ms, before, after), cuda::kSuccess);
  // The next call of the host, the start of the copy, and 26 bytes per nanosecond.
  EXPECT_NEAR(ms, (1400 + 1700 + 100'000) / 1e6, 1e-5);
}

}  // namespace
}  // namespace anyccl::test
