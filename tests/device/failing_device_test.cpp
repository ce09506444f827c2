// What becomes of calls when the driver is missing or fails. Each case runs in a child, as the
// driver reads its settings when it is loaded.

#include <dlfcn.h>

#include <atomic>
#include <barrier>
#include <fstream>
#include <iterator>

#include "device/child.hpp"
#include "device/device_memory.hpp"

namespace anyccl::test {
namespace {

bool has_driver() {
  std::ifstream maps("/proc/self/maps");
  const std::string text{std::istreambuf_iterator<char>(maps), {}};
  return text.find("libcuda") != std::string::npos;
}

TEST(FailingDevice, a_program_of_the_host_never_loads_the_driver) {
  expect_in_child({}, [] {
    run_ranks(2, [](Communicator& comm) {
      std::vector<float> x{1};
      EXPECT_OK(wait(comm.all_reduce(view(x), view(x), ReduceOp::sum)));
      EXPECT_EQ(x[0], 2);
    });
    EXPECT_FALSE(has_driver());
    EXPECT_TRUE(open_device(0).ok());  // it is there
    EXPECT_TRUE(has_driver());
  });
}

TEST(FailingDevice, a_communicator_does_not_start_a_driver_that_is_loaded) {
  expect_in_child({}, [] {
    void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
    const auto count = reinterpret_cast<int (*)(int*)>(dlsym(driver, "cuDeviceGetCount"));
    run_ranks(1, [](Communicator&) {});
    int devices = 0;
    EXPECT_EQ(count(&devices), 3);  // CUDA_ERROR_NOT_INITIALIZED
  });
}

/// Every rank's call is over and names the function that failed on one of them, and no call works
/// afterwards.
void expect_named_failure(const std::string& fault, const std::string& words) {
  expect_in_child({{"FAIL", fault}}, [&] {
    std::atomic<int> named = 0;
    std::barrier both(2);
    const CurrentDevice current(0);
    run_ranks(2, [&](Communicator& comm) {
      const auto device = open_device(device_of(comm));
      ASSERT_OK(device.status());
      ASSERT_OK((*device)->enter());
      const auto x = (*device)->allocate(4096);
      ASSERT_OK(x.status());
      both.arrive_and_wait();  // the other rank has memory, too, before a device is lost
      const anycclResult_t result =
          anycclAllReduce(*x, *x, 1024, anycclFloat32, anycclSum, comm.handle(), nullptr);
      EXPECT_NE(result, anycclSuccess);
      const std::string text = anycclGetLastError(comm.handle());
      if (text.find(words) != std::string::npos)
        ++named;
      else
        ADD_FAILURE() << text;
      EXPECT_NE(anycclAllReduce(*x, *x, 1024, anycclFloat32, anycclSum, comm.handle(), nullptr),
                anycclSuccess);
    });
    EXPECT_EQ(named.load(), 2);
  });
}

TEST(FailingDevice, a_copy_that_fails_ends_the_call_on_all_ranks) {
  expect_named_failure("cuMemcpy:1", "cuMemcpyAsync");
}
TEST(FailingDevice, memory_that_cannot_be_pinned_ends_the_call_on_all_ranks) {
  expect_named_failure("cuMemHostRegister:1", "cuMemHostRegister");
}
TEST(FailingDevice, a_queue_that_cannot_be_made_ends_the_call_on_all_ranks) {
  expect_named_failure("cuStreamCreate:1", "cuStreamCreateWithPriority");
}
TEST(FailingDevice, an_event_that_cannot_be_recorded_ends_the_call_on_all_ranks) {
  expect_named_failure("cuEventRecord:1", "cuEventRecord");
}
TEST(FailingDevice, a_lost_device_ends_the_call_on_all_ranks) {
  expect_named_failure("lost:1", "CUDA_ERROR_LAUNCH_FAILED");
}

TEST(FailingDevice, a_driver_that_cannot_tell_what_memory_is_ends_the_call_on_all_ranks) {
  expect_named_failure("cuPointerGetAttributes:1", "cuPointerGetAttributes");
}

TEST(FailingDevice, no_device_is_named) {
  expect_in_child({{"DEVICES", "0"}}, [] {
    const Status status = open_device(0).status();
    EXPECT_EQ(status.code(), Code::unsupported);
    EXPECT_FALSE(status.message().empty());
    EXPECT_EQ(device_in_use(), nullptr);
  });
}

}  // namespace
}  // namespace anyccl::test
