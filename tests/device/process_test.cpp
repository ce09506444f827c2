// The simulated driver and processes: what each must not touch, what they share, and what one that
// dies leaves behind.

#include <gtest/gtest.h>
#include <poll.h>

#include <cstring>

#include "device/child.hpp"
#include "device/kernels.hpp"
#include "device/simulated.hpp"
#include "support/temporary_folder.hpp"

namespace anyccl::test {
namespace {

constexpr std::size_t kMegabyte = std::size_t{1} << 20;

/// Bytes from one process to another.
class Pipe {
 public:
  Pipe() { EXPECT_EQ(::pipe2(ends_.data(), O_CLOEXEC), 0); }
  ~Pipe() {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  template <typename Value>
  void send(const Value& value) const {
    EXPECT_EQ(::write(ends_[1], &value, sizeof value), static_cast<ssize_t>(sizeof value));
  }
  template <typename Value = char>
  Value receive() const {
    pollfd ready{ends_[0], POLLIN, 0};
    EXPECT_EQ(::poll(&ready, 1, 60'000), 1);
    Value value{};
    EXPECT_EQ(::read(ends_[0], &value, sizeof value), static_cast<ssize_t>(sizeof value));
    return value;
  }

 private:
  std::array<int, 2> ends_{};
};

/// A machine with one small device that processes share.
class SharedMachine : public testing::Test {
 protected:
  SimulatorSettings settings() const {
    return {{"STATE", folder_.path() + "/state"}, {"DEVICES", "1"}, {"DEVICE_MB", "1"}};
  }
  SimulatorSettings settings_with(const std::string& name, const std::string& value) const {
    SimulatorSettings all = settings();
    all.emplace_back(name, value);
    return all;
  }

 private:
  TemporaryFolder folder_;
};

cuda::Error try_to_allocate(std::size_t bytes) {
  enter_device();
  cuda::Address at = 0;
  return driver().cuMemAlloc_v2(&at, bytes);
}

TEST(DriverProcess, is_ended_when_the_host_touches_memory_of_a_device) {
  const Ending ending = in_child({}, [] {
    ::signal(SIGSEGV, SIG_DFL);  // also under a sanitizer, which would exit
    enter_device();
    auto* const at = reinterpret_cast<volatile char*>(allocate(64));
    *at = 1;
  });
  EXPECT_EQ(ending.signal, SIGSEGV);
}

TEST(DriverProcess, makes_no_call_before_cuInit) {
  expect_in_child({}, [] {
    int count = 0;
    cuda::Context context = nullptr;
    EXPECT_EQ(driver().cuDeviceGetCount(&count), cuda::kNotInitialized);
    EXPECT_EQ(driver().cuCtxGetCurrent(&context), cuda::kNotInitialized);
    EXPECT_EQ(driver().cuCtxSynchronize(), cuda::kNotInitialized);
    EXPECT_EQ(driver().cuStreamDestroy_v2(nullptr), cuda::kNotInitialized);
  });
}

TEST(DriverProcess, that_is_forked_from_one_with_the_driver_makes_no_call) {
  expect_in_child({}, [] {
    enter_device();
    expect_in_child({}, [] {
      cuda::Address at = 0;
      EXPECT_EQ(driver().cuInit(0), cuda::kNotInitialized);
      EXPECT_EQ(driver().cuMemAlloc_v2(&at, 64), cuda::kNotInitialized);
    });
  });
}

TEST_F(SharedMachine, lets_a_process_open_memory_of_another_one) {
  const Pipe handles, ends;
  Child owner(settings(), [&] {
    enter_device();
    const cuda::Address at = allocate(64);
    auto* const words = pinned();
    words[0] = 42;
    const cuda::Stream stream = make_stream();
    EXPECT_EQ(driver().cuMemcpyHtoDAsync_v2(at, words, 4, stream), cuda::kSuccess);
    EXPECT_TRUE(becomes_done(stream));
    cuda::IpcHandle handle = {};
    EXPECT_EQ(driver().cuIpcGetMemHandle(&handle, at), cuda::kSuccess);
    cuda::Address own = 0;
    EXPECT_EQ(driver().cuIpcOpenMemHandle_v2(&own, handle, 0), cuda::kInvalidContext);
    handles.send(handle);
    ends.receive();
    EXPECT_EQ(driver().cuMemFree_v2(at), cuda::kSuccess);
    handles.send('x');
    ends.receive();
  });
  expect_in_child(settings(), [&] {
    enter_device();
    const auto handle = handles.receive<cuda::IpcHandle>();
    cuda::Address at = 0, again = 0;
    ASSERT_EQ(driver().cuIpcOpenMemHandle_v2(&at, handle, 0), cuda::kSuccess);
    ASSERT_EQ(driver().cuIpcOpenMemHandle_v2(&again, handle, 0), cuda::kSuccess);
    EXPECT_EQ(again, at);
    auto* const words = pinned();
    const cuda::Stream stream = make_stream();
    EXPECT_EQ(driver().cuMemcpyDtoHAsync_v2(words, at, 4, stream), cuda::kSuccess);
    EXPECT_TRUE(becomes_done(stream));
    EXPECT_EQ(words[0], 42U);
    EXPECT_EQ(driver().cuMemFree_v2(at), cuda::kInvalidValue);
    EXPECT_EQ(driver().cuIpcCloseMemHandle(at), cuda::kSuccess);
    EXPECT_EQ(driver().cuIpcCloseMemHandle(at), cuda::kSuccess);
    EXPECT_EQ(driver().cuIpcCloseMemHandle(at), cuda::kInvalidValue);
    ends.send('x');
    handles.receive();
    EXPECT_EQ(driver().cuIpcOpenMemHandle_v2(&at, handle, 0), cuda::kInvalidHandle);
    ends.send('x');
  });
  EXPECT_EQ(owner.end().exit_status, 0) << owner.end().errors;
}

TEST_F(SharedMachine, has_no_memory_left_when_another_process_has_it) {
  const Pipe allocated, ends;
  Child owner(settings(), [&] {
    EXPECT_EQ(try_to_allocate(kMegabyte), cuda::kSuccess);
    allocated.send('x');
    ends.receive();
  });
  allocated.receive();
  expect_in_child(settings(), [] {
    EXPECT_EQ(try_to_allocate(4096), cuda::kOutOfMemory);
    std::size_t free_bytes = 7, all = 0;
    EXPECT_EQ(driver().cuMemGetInfo_v2(&free_bytes, &all), cuda::kSuccess);
    EXPECT_EQ(free_bytes, 0U);
    EXPECT_EQ(all, kMegabyte);
  });
  ends.send('x');
  EXPECT_EQ(owner.end().exit_status, 0);
}

TEST_F(SharedMachine, takes_back_memory_of_a_process_that_died) {
  Child owner(settings(), [] {
    EXPECT_EQ(try_to_allocate(kMegabyte), cuda::kSuccess);
    ::raise(SIGKILL);
  });
  owner.await();  // nobody has reaped it
  expect_in_child(settings(), [] { EXPECT_EQ(try_to_allocate(kMegabyte), cuda::kSuccess); });
  EXPECT_EQ(owner.end().signal, SIGKILL);
  expect_in_child(settings(), [] {
    enter_device();
    std::size_t free_bytes = 0, all = 0;
    EXPECT_EQ(driver().cuMemGetInfo_v2(&free_bytes, &all), cuda::kSuccess);
    EXPECT_EQ(free_bytes, kMegabyte);
  });
}

TEST_F(SharedMachine, goes_on_when_a_process_dies_with_the_lock) {
  Child holder(settings_with("FAIL", "killed:1"), [] { try_to_allocate(64); });
  holder.await();  // nobody has reaped it
  expect_in_child(settings(), [] { EXPECT_EQ(try_to_allocate(64), cuda::kSuccess); });
  EXPECT_EQ(holder.end().signal, SIGKILL);
  const Ending reaped = in_child(settings_with("FAIL", "killed:1"), [] { try_to_allocate(64); });
  EXPECT_EQ(reaped.signal, SIGKILL);
  expect_in_child(settings(), [] { EXPECT_EQ(try_to_allocate(64), cuda::kSuccess); });
}

TEST_F(SharedMachine, is_made_with_the_same_settings_by_all) {
  expect_in_child(settings(), [] { EXPECT_EQ(try_to_allocate(64), cuda::kSuccess); });
  const Ending ending = in_child(settings_with("DEVICE_MB", "2"), [] { try_to_allocate(64); });
  EXPECT_EQ(ending.exit_status, 2);
  EXPECT_NE(ending.errors.find("SIMULATED_CUDA_DEVICE_MB"), std::string::npos) << ending.errors;
}

cuda::Function load_kernel(const char* name) {
  cuda::Module module = nullptr;
  cuda::Function function = nullptr;
  EXPECT_EQ(driver().cuModuleLoadData(&module, "an image"), cuda::kSuccess);
  EXPECT_EQ(driver().cuModuleGetFunction(&function, module, name), cuda::kSuccess);
  return function;
}

cuda::Error launch_add(AddArgs args, cuda::Stream stream) {
  void* parameters[] = {&args};
  return driver().cuLaunchKernel(load_kernel("test_add"), 8, 1, 1, 32, 1, 1, 0, stream, parameters,
                                 nullptr);
}

TEST(DriverKernel, reads_and_writes_memory_of_devices_and_pinned_memory) {
  expect_in_child({{"KERNELS", ANYCCL_TEST_KERNELS}}, [] {
    enter_device();
    auto* const host = pinned<float>();
    for (int i = 0; i < 10; ++i) host[i] = static_cast<float>(i);
    auto* const there = reinterpret_cast<float*>(allocate(40));
    const cuda::Stream stream = make_stream();
    EXPECT_EQ(launch_add({there, host, host, 10}, stream), cuda::kSuccess);
    EXPECT_EQ(launch_add({host + 10, there, host, 10}, stream), cuda::kSuccess);
    ASSERT_TRUE(becomes_done(stream));
    for (int i = 0; i < 10; ++i) EXPECT_EQ(host[10 + i], static_cast<float>(3 * i));
  });
}

TEST(DriverKernel, that_uses_memory_which_is_not_pinned_loses_the_device) {
  expect_in_child({{"KERNELS", ANYCCL_TEST_KERNELS}}, [] {
    enter_device();
    float own[16] = {};
    auto* const there = reinterpret_cast<float*>(allocate(64));
    const cuda::Stream stream = make_stream();
    EXPECT_EQ(launch_add({there, own, there, 16}, stream), cuda::kSuccess);
    EXPECT_EQ(driver().cuStreamSynchronize(stream), cuda::kLaunchFailed);
    EXPECT_EQ(driver().cuStreamQuery(stream), cuda::kLaunchFailed);
    cuda::Address at = 0;
    EXPECT_EQ(driver().cuMemAlloc_v2(&at, 64), cuda::kLaunchFailed);
  });
}

TEST(DriverKernel, of_an_unknown_name_is_not_found) {
  expect_in_child({{"KERNELS", ANYCCL_TEST_KERNELS}}, [] {
    enter_device();
    cuda::Module module = nullptr;
    cuda::Function function = nullptr;
    EXPECT_EQ(driver().cuModuleLoadData(&module, "an image"), cuda::kSuccess);
    EXPECT_EQ(driver().cuModuleGetFunction(&function, module, "nothing"), cuda::kNotFound);
  });
}

}  // namespace
}  // namespace anyccl::test
