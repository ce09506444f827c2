// Device behind the driver of CUDA, where that has other settings, or another process has part.

#include <unistd.h>

#include <array>

#include "device/child.hpp"
#include "device/device_memory.hpp"

namespace anyccl::test {
namespace {

TEST(CudaDevice, abilities_are_those_of_the_driver) {
  expect_in_child({{"NO_MEMOPS", "1"}, {"NO_READ_ONLY", "1"}}, [] {
    const CurrentDevice device(0);
    EXPECT_FALSE(device->abilities().writes_words);
    EXPECT_FALSE(device->abilities().waits_for_words);
    EXPECT_FALSE(device->abilities().pins_read_only);
    const Pinned words(*device, 4096);
    EXPECT_EQ(device->write_word(nullptr, words.word(), 1).code(), Code::device_error);
  });
}

TEST(CudaDevice, a_description_says_which_other_devices_are_reached) {
  const auto expect_words = [](const char* peers, const char* words) {
    expect_in_child({{"DEVICES", "3"}, {"P2P", peers}}, [&] {
      std::string why;
      const std::vector<std::string> lines = describe_devices(why);
      ASSERT_EQ(lines.size(), 3U) << why;
      EXPECT_NE(lines[1].find(words), std::string::npos) << lines[1];
    });
  };
  expect_words("0", "reaches memory of no other device");
  expect_words("1", "reaches memory of device 0, 2");
}

TEST(CudaDevice, another_process_opens_memory_by_its_handle) {
  const std::string state = "/dev/shm/anyccl-cuda-device-test-" + std::to_string(getpid());
  std::array<int, 2> there{}, back{};
  ASSERT_EQ(pipe(there.data()), 0);
  ASSERT_EQ(pipe(back.data()), 0);
  Child owner({{"STATE", state}}, [&] {
    const CurrentDevice device(0);
    const OnDevice memory = eight_bytes(device, 42);
    const SharedHandle handle = *device->share(memory.at());
    EXPECT_EQ(device->open_shared(handle).status().code(), Code::device_error);  // its own
    EXPECT_EQ(write(there[1], &handle, sizeof handle), static_cast<ssize_t>(sizeof handle));
    char done = 0;
    EXPECT_EQ(read(back[0], &done, 1), 1);
    EXPECT_EQ(value_of(memory), 43);
  });
  Child other({{"STATE", state}}, [&] {
    const CurrentDevice device(0);
    SharedHandle handle;
    ASSERT_EQ(read(there[0], &handle, sizeof handle), static_cast<ssize_t>(sizeof handle));
    void* const opened = *device->open_shared(handle);
    const Pinned copy(*device, 4096);
    const DeviceQueue queue = *device->make_queue(false);
    EXPECT_OK(device->copy(queue, copy.at(), opened, 8));
    device.await(queue);
    EXPECT_EQ(*copy.word(), 42);
    ++*copy.word();
    EXPECT_OK(device->copy(queue, opened, copy.at(), 8));
    device.await(queue);
    EXPECT_OK(device->close_shared(opened));
    EXPECT_EQ(write(back[1], "x", 1), 1);
  });
  EXPECT_EQ(other.end().exit_status, 0) << other.end().errors;
  EXPECT_EQ(owner.end().exit_status, 0) << owner.end().errors;
  unlink(state.c_str());
}

}  // namespace
}  // namespace anyccl::test
