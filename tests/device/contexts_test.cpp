// The simulated driver: contexts, devices, errors, and the table of functions.

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "device/simulated.hpp"

namespace anyccl::test {
namespace {

cuda::Context current() {
  cuda::Context context = nullptr;
  EXPECT_EQ(driver().cuCtxGetCurrent(&context), cuda::kSuccess);
  return context;
}

cuda::Context retain(int device) {
  cuda::Context context = nullptr;
  EXPECT_EQ(driver().cuInit(0), cuda::kSuccess);
  EXPECT_EQ(driver().cuDevicePrimaryCtxRetain(&context, device), cuda::kSuccess);
  return context;
}

TEST(DriverContext, that_is_pushed_is_current_until_it_is_popped) {
  const cuda::Context outer = retain(0), inner = retain(1);
  ASSERT_EQ(driver().cuCtxSetCurrent(outer), cuda::kSuccess);
  EXPECT_EQ(driver().cuCtxPushCurrent_v2(inner), cuda::kSuccess);
  EXPECT_EQ(current(), inner);
  cuda::Context popped = nullptr;
  EXPECT_EQ(driver().cuCtxPopCurrent_v2(&popped), cuda::kSuccess);
  EXPECT_EQ(popped, inner);
  EXPECT_EQ(current(), outer);
}

TEST(DriverContext, that_is_set_replaces_the_top_of_the_stack) {
  const cuda::Context first = retain(0), second = retain(1);
  std::thread([&] {
    EXPECT_EQ(driver().cuCtxPushCurrent_v2(first), cuda::kSuccess);
    EXPECT_EQ(driver().cuCtxPushCurrent_v2(first), cuda::kSuccess);
    EXPECT_EQ(driver().cuCtxSetCurrent(second), cuda::kSuccess);
    EXPECT_EQ(current(), second);
    EXPECT_EQ(driver().cuCtxPopCurrent_v2(nullptr), cuda::kSuccess);
    EXPECT_EQ(current(), first);
    EXPECT_EQ(driver().cuCtxSetCurrent(nullptr), cuda::kSuccess);
    EXPECT_EQ(current(), nullptr);
  }).join();
}

TEST(DriverContext, is_that_of_one_thread) {
  enter_device();
  std::thread([] {
    EXPECT_EQ(current(), nullptr);
    EXPECT_EQ(driver().cuCtxPopCurrent_v2(nullptr), cuda::kInvalidContext);
  }).join();
}

TEST(DriverContext, is_needed_by_calls_that_make_something) {
  retain(0);
  std::thread([] {
    cuda::Address at = 0;
    cuda::Stream stream = nullptr;
    cuda::Event event = nullptr;
    cuda::Ordinal device = 0;
    EXPECT_EQ(driver().cuMemAlloc_v2(&at, 64), cuda::kInvalidContext);
    EXPECT_EQ(driver().cuStreamCreateWithPriority(&stream, 0, 0), cuda::kInvalidContext);
    EXPECT_EQ(driver().cuEventCreate(&event, 0), cuda::kInvalidContext);
    EXPECT_EQ(driver().cuCtxGetDevice(&device), cuda::kInvalidContext);
    EXPECT_EQ(driver().cuCtxSynchronize(), cuda::kInvalidContext);
    EXPECT_EQ(driver().cuStreamQuery(nullptr), cuda::kInvalidContext);
    EXPECT_EQ(pin(map_page()), cuda::kInvalidContext);
  }).join();
}

TEST(DriverContext, of_an_unknown_handle_is_refused) {
  retain(0);
  int nothing = 0;
  const auto unknown = reinterpret_cast<cuda::Context>(&nothing);
  EXPECT_EQ(driver().cuCtxPushCurrent_v2(unknown), cuda::kInvalidContext);
  EXPECT_EQ(driver().cuCtxSetCurrent(unknown), cuda::kInvalidContext);
  EXPECT_EQ(driver().cuCtxPushCurrent_v2(nullptr), cuda::kInvalidContext);
}

TEST(DriverDevice, beyond_the_last_one_is_invalid) {
  cuda::Context context = nullptr;
  int count = 0, value = 0;
  ASSERT_EQ(driver().cuInit(0), cuda::kSuccess);
  ASSERT_EQ(driver().cuDeviceGetCount(&count), cuda::kSuccess);
  EXPECT_EQ(count, 2);
  EXPECT_EQ(driver().cuDevicePrimaryCtxRetain(&context, count), cuda::kInvalidDevice);
  EXPECT_EQ(driver().cuDeviceGetAttribute(&value, cuda::kCopyEngines, count), cuda::kInvalidDevice);
}

TEST(DriverError, has_the_name_that_CUDA_gives_it) {
  const char* name = nullptr;
  EXPECT_EQ(driver().cuGetErrorName(cuda::kNotReady, &name), cuda::kSuccess);
  EXPECT_STREQ(name, "CUDA_ERROR_NOT_READY");
  EXPECT_EQ(driver().cuGetErrorName(12345, &name), cuda::kInvalidValue);
  EXPECT_EQ(name, nullptr);
}

TEST(DriverTable, has_every_function_with_and_without_its_version) {
  std::vector<std::string> names;
#define ANYCCL_NAME(name, parameters) names.push_back(#name);
  ANYCCL_CUDA_FUNCTIONS(ANYCCL_NAME)
  ANYCCL_MORE_CUDA_FUNCTIONS(ANYCCL_NAME)
#undef ANYCCL_NAME
  for (const std::string& name : names) {
    const std::string plain = name.ends_with("_v2") ? name.substr(0, name.size() - 3) : name;
    for (const std::string& asked : {name, plain}) {
      void* found = nullptr;
      EXPECT_EQ(driver().cuGetProcAddress_v2(asked.c_str(), &found, 13000, 0, nullptr), 0) << asked;
      EXPECT_EQ(found, dlsym(driver_library(), name.c_str())) << asked;
    }
  }
  void* found = &names;
  EXPECT_EQ(driver().cuGetProcAddress_v2("cuNothing", &found, 13000, 0, nullptr), cuda::kNotFound);
  EXPECT_EQ(found, nullptr);
}

}  // namespace
}  // namespace anyccl::test
