#pragma once
// Tests of the simulated driver share these helpers. A test that needs settings, or a process that
// has not used the driver before, runs in a child (child.hpp): the parent never loads the driver.

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <chrono>
#include <functional>
#include <thread>

#include "device/driver_functions.hpp"

namespace anyccl::test {

inline constexpr std::size_t kWordsPage = 4096;

inline cuda::Address address(const void* at) {
  return reinterpret_cast<cuda::Address>(at);
}

/// The device is that of the calling thread from now on.
inline cuda::Context enter_device(int number = 0) {
  cuda::Context context = nullptr;
  EXPECT_EQ(driver().cuInit(0), cuda::kSuccess);
  EXPECT_EQ(driver().cuDevicePrimaryCtxRetain(&context, number), cuda::kSuccess);
  EXPECT_EQ(driver().cuCtxSetCurrent(context), cuda::kSuccess);
  return context;
}

inline cuda::Stream make_stream(unsigned flags = cuda::kStreamNonBlocking, int priority = 0) {
  cuda::Stream stream = nullptr;
  EXPECT_EQ(driver().cuStreamCreateWithPriority(&stream, flags, priority), cuda::kSuccess);
  return stream;
}

inline cuda::Address allocate(std::size_t bytes) {
  cuda::Address at = 0;
  EXPECT_EQ(driver().cuMemAlloc_v2(&at, bytes), cuda::kSuccess);
  return at;
}

/// A page that the process shares, with these rights.
inline void* map_page(int rights = PROT_READ | PROT_WRITE) {
  void* const at = mmap(nullptr, kWordsPage, rights, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  EXPECT_NE(at, MAP_FAILED);
  return at;
}

inline cuda::Error pin(void* page, unsigned flags = 0) {
  return driver().cuMemHostRegister_v2(page, kWordsPage, flags);
}

/// A pinned page of zeros. It stays: streams may still look at it.
template <typename Value = std::uint32_t>
Value* pinned() {
  void* const page = map_page();
  EXPECT_EQ(pin(page), cuda::kSuccess);
  return static_cast<Value*>(page);
}

inline void write_by_host(std::uint32_t* word, std::uint32_t value) {
  __atomic_store_n(word, value, __ATOMIC_RELEASE);  // pairs with the wait of a stream
}

inline cuda::Error wait_for_one(cuda::Stream stream, const std::uint32_t* word) {
  return driver().cuStreamWaitValue32_v2(stream, address(word), 1, cuda::kWaitGeq);
}
inline cuda::Error write_one(cuda::Stream stream, const std::uint32_t* word) {
  return driver().cuStreamWriteValue32_v2(stream, address(word), 1, 0);
}

/// Whether it becomes true before a deadline that only a hang reaches.
inline bool becomes_true(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

inline bool is_done(cuda::Stream stream) {
  return driver().cuStreamQuery(stream) == cuda::kSuccess;
}
inline bool becomes_done(cuda::Stream stream) {
  return becomes_true([&] { return is_done(stream); });
}
/// Whether it is still false after a time in which it would become true if nothing held it up. Only
/// a wait shows that nothing happens: on a slow machine this notices less, and never more.
inline bool stays_false(const std::function<bool()>& condition) {
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  return !condition();
}
inline bool stays_undone(cuda::Stream stream) {
  return stays_false([&] { return is_done(stream); });
}

}  // namespace anyccl::test
