// The simulated driver: what its settings do, and that a wrong one is not ignored.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "device/child.hpp"
#include "device/simulated.hpp"

namespace anyccl::test {
namespace {

/// The first call ends the program and says why.
void expect_refused(const std::string& name, const std::string& value, const std::string& reason) {
  const Ending ending = in_child({{name, value}}, [] { enter_device(); });
  EXPECT_EQ(ending.exit_status, 2) << name << "=" << value;
  EXPECT_NE(ending.errors.find("SIMULATED_CUDA_" + name), std::string::npos) << ending.errors;
  EXPECT_NE(ending.errors.find(reason), std::string::npos) << ending.errors;
}

TEST(DriverSetting, that_is_no_number_ends_the_program) {
  expect_refused("DEPTH", "many", "must be a number from 1 to");
  expect_refused("DEPTH", "16x", "must be a number from 1 to");
  expect_refused("CONNECTIONS", "0", "must be a number from 1 to");
  expect_refused("DEVICES", "9", "must be a number from 0 to 8");
  expect_refused("DEVICE_MB", "-1", "must be a number from 1 to");
}

TEST(DriverSetting, that_is_neither_on_nor_off_ends_the_program) {
  expect_refused("P2P", "yes", "must be 0 or 1");
}

TEST(DriverSetting, of_faults_without_number_or_function_ends_the_program) {
  expect_refused("FAIL", "cuMemAlloc", "NAME:NUMBER");
  expect_refused("FAIL", "cuMemAlloc:0", "NAME:NUMBER");
  expect_refused("FAIL", "cuMemAlloc:1,", "NAME:NUMBER");
  expect_refused("FAIL", "foo:1", "no function begins with 'foo'");
}

TEST(DriverSetting, of_delays_or_times_that_cannot_be_read_ends_the_program) {
  expect_refused("CHAOS", "7,", "a seed");
  expect_refused("CHAOS", "seven", "a seed");
  expect_refused("MODEL", "links=3", "NAME=NUMBER");
  expect_refused("MODEL", "link=0", "above 0");
}

TEST(DriverSetting, of_an_unknown_name_ends_the_program) {
  expect_refused("CHAOTIC", "7", "there is no such setting");
}

TEST(DriverSetting, of_a_file_that_cannot_be_opened_ends_the_program) {
  const auto allocate_some = [] {
    enter_device();
    allocate(64);
  };
  const Ending ending = in_child({{"STATE", "/no folder/state"}}, allocate_some);
  EXPECT_EQ(ending.exit_status, 2);
  EXPECT_NE(ending.errors.find("No such file"), std::string::npos) << ending.errors;
}

TEST(DriverSetting, of_kernels_that_cannot_be_loaded_ends_the_program) {
  const Ending ending = in_child({{"KERNELS", "/no folder/kernels.so"}}, [] {
    enter_device();
    cuda::Module module = nullptr;
    cuda::Function function = nullptr;
    EXPECT_EQ(driver().cuModuleLoadData(&module, "an image"), cuda::kSuccess);
    driver().cuModuleGetFunction(&function, module, "test_add");
  });
  EXPECT_EQ(ending.exit_status, 2);
  EXPECT_NE(ending.errors.find("SIMULATED_CUDA_KERNELS"), std::string::npos) << ending.errors;
}

TEST(DriverSetting, lets_the_second_allocation_fail) {
  const Ending ending = in_child({{"FAIL", "cuMemAlloc:2"}}, [] {
    enter_device();
    cuda::Address at = 0;
    EXPECT_EQ(driver().cuMemAlloc_v2(&at, 64), cuda::kSuccess);
    EXPECT_EQ(driver().cuMemAlloc_v2(&at, 64), cuda::kOutOfMemory);
    EXPECT_EQ(driver().cuMemAlloc_v2(&at, 64), cuda::kSuccess);
  });
  EXPECT_EQ(ending.exit_status, 0) << ending.errors;
  EXPECT_NE(ending.errors.find("cuMemAlloc_v2, number 2"), std::string::npos) << ending.errors;
}

TEST(DriverSetting, lets_cuInit_fail) {
  expect_in_child({{"FAIL", "cuInit:1"}}, [] { EXPECT_EQ(driver().cuInit(0), cuda::kNoDevice); });
}

TEST(DriverSetting, loses_the_device_at_its_third_piece_of_work) {
  expect_in_child({{"FAIL", "lost:3"}}, [] {
    enter_device();
    auto* const words = pinned();
    const cuda::Stream stream = make_stream();
    for (int i = 0; i < 3; ++i) EXPECT_EQ(write_one(stream, words + i), cuda::kSuccess);
    EXPECT_EQ(driver().cuStreamSynchronize(stream), cuda::kLaunchFailed);
    EXPECT_EQ(words[1], 1U);
    EXPECT_EQ(words[2], 0U);
    EXPECT_EQ(driver().cuCtxSynchronize(), cuda::kLaunchFailed);
  });
}

TEST(DriverSetting, lets_a_lost_device_wait_no_longer) {
  expect_in_child({{"FAIL", "lost:2"}}, [] {
    enter_device();
    const cuda::Stream waiting = make_stream(), other = make_stream();
    auto* const words = pinned();
    ASSERT_EQ(wait_for_one(waiting, words), cuda::kSuccess);
    EXPECT_TRUE(stays_undone(waiting));
    ASSERT_EQ(write_one(other, words + 1), cuda::kSuccess);
    EXPECT_EQ(driver().cuStreamSynchronize(waiting), cuda::kLaunchFailed);
  });
}

TEST(DriverSetting, says_how_many_devices_there_are) {
  expect_in_child({{"DEVICES", "3"}}, [] {
    int count = 0;
    EXPECT_EQ(driver().cuInit(0), cuda::kSuccess);
    EXPECT_EQ(driver().cuDeviceGetCount(&count), cuda::kSuccess);
    EXPECT_EQ(count, 3);
  });
  expect_in_child({{"DEVICES", "0"}}, [] { EXPECT_EQ(driver().cuInit(0), cuda::kNoDevice); });
}

TEST(DriverSetting, says_how_much_memory_a_device_has) {
  expect_in_child({{"DEVICE_MB", "1"}}, [] {
    enter_device();
    cuda::Address at = 0;
    EXPECT_EQ(driver().cuMemAlloc_v2(&at, (1 << 20) + 1), cuda::kOutOfMemory);
    EXPECT_EQ(driver().cuMemAlloc_v2(&at, 1 << 20), cuda::kSuccess);
  });
}

int attribute(int which) {
  int value = -1;
  EXPECT_EQ(driver().cuDeviceGetAttribute(&value, which, 0), cuda::kSuccess);
  return value;
}

TEST(DriverSetting, takes_words_of_streams_away) {
  expect_in_child({{"NO_MEMOPS", "1"}}, [] {
    enter_device();
    EXPECT_EQ(attribute(cuda::kStreamWords), 0);
    EXPECT_EQ(write_one(make_stream(), pinned()), cuda::kNotSupported);
    EXPECT_EQ(wait_for_one(make_stream(), pinned()), cuda::kNotSupported);
  });
}

TEST(DriverSetting, takes_pinning_for_reading_away) {
  expect_in_child({{"NO_READ_ONLY", "1"}}, [] {
    enter_device();
    EXPECT_EQ(attribute(cuda::kReadOnlyRegister), 0);
    EXPECT_EQ(pin(map_page(PROT_READ), cuda::kRegisterReadOnly), cuda::kNotSupported);
  });
}

TEST(DriverSetting, takes_handles_of_memory_away) {
  expect_in_child({{"NO_IPC", "1"}}, [] {
    enter_device();
    cuda::IpcHandle handle = {};
    EXPECT_EQ(driver().cuIpcGetMemHandle(&handle, allocate(64)), cuda::kNotSupported);
  });
}

TEST(DriverSetting, lets_devices_reach_each_other) {
  const auto can_reach = [](int other) {
    int can = -1;
    enter_device();
    EXPECT_EQ(driver().cuDeviceCanAccessPeer(&can, 0, other), cuda::kSuccess);
    return can;
  };
  expect_in_child({}, [&] { EXPECT_EQ(can_reach(1), 0); });
  expect_in_child({{"P2P", "1"}}, [&] {
    EXPECT_EQ(can_reach(1), 1);
    EXPECT_EQ(can_reach(0), 0);
  });
}

TEST(DriverSetting, lets_memory_be_copied_that_is_not_pinned) {
  expect_in_child({{"PAGEABLE", "1"}}, [] {
    enter_device();
    const cuda::Address at = allocate(4);
    const cuda::Stream stream = make_stream();
    int from = 42, to = 0;
    EXPECT_EQ(driver().cuMemcpyHtoDAsync_v2(at, &from, 4, stream), cuda::kSuccess);
    EXPECT_EQ(driver().cuMemcpyDtoHAsync_v2(&to, at, 4, stream), cuda::kSuccess);
    EXPECT_EQ(to, 42);  // such a call returns when the copy is done
    EXPECT_EQ(driver().cuMemcpyAsync(address(&to), address(&from), 4, stream), cuda::kInvalidValue);
  });
}

TEST(DriverSetting, delays_work_and_leaves_its_results_right) {
  expect_in_child({{"CHAOS", "7,60"}}, [] {
    enter_device();
    auto* const host = pinned<unsigned char>();
    const cuda::Address at = allocate(2048);
    const cuda::Stream first = make_stream(), second = make_stream();
    for (unsigned round = 1; round <= 100; ++round) {
      std::fill(host, host + 2048, static_cast<unsigned char>(round));
      cuda::Event event = nullptr;
      EXPECT_EQ(driver().cuEventCreate(&event, 0), cuda::kSuccess);
      EXPECT_EQ(driver().cuMemcpyHtoDAsync_v2(at, host, 2000, first), cuda::kSuccess);
      EXPECT_EQ(driver().cuEventRecord(event, first), cuda::kSuccess);
      EXPECT_EQ(driver().cuStreamWaitEvent(second, event, 0), cuda::kSuccess);
      EXPECT_EQ(driver().cuMemcpyDtoHAsync_v2(host + 2048, at, 2000, second), cuda::kSuccess);
      EXPECT_EQ(driver().cuStreamSynchronize(second), cuda::kSuccess);
      EXPECT_TRUE(std::equal(host, host + 2000, host + 2048)) << round;
      EXPECT_EQ(driver().cuEventDestroy_v2(event), cuda::kSuccess);
    }
  });
}

TEST(DriverSetting, traces_calls) {
  const Ending ending = in_child({{"TRACE", "1"}}, [] { enter_device(); });
  EXPECT_EQ(ending.exit_status, 0);
  EXPECT_NE(ending.errors.find("calls cuDevicePrimaryCtxRetain"), std::string::npos);
}

TEST(DriverSetting, changes_modelled_times) {
  expect_in_child({{"MODEL", "sync=50000,small_call=0"}}, [] {
    enter_device();
    driver_function<void()>("anyccl_sim_reset")();
    EXPECT_EQ(driver().cuCtxSynchronize(), cuda::kSuccess);
    EXPECT_EQ(driver_function<double()>("anyccl_sim_time")(), 50000.0);
  });
}

}  // namespace
}  // namespace anyccl::test
