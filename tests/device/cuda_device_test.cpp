// Device behind the driver of CUDA: each of its functions, on the simulated one.

#include <atomic>

#include "device/device_memory.hpp"

namespace anyccl::test {
namespace {

TEST(CudaDevice, one_number_is_one_object_while_somebody_has_it) {
  const auto one = open_device(0), same = open_device(0), another = open_device(1);
  EXPECT_EQ(*one, *same);
  EXPECT_NE(*one, *another);
  EXPECT_EQ((*another)->number(), 1);
  EXPECT_EQ(open_device(-1).status().code(), Code::unsupported);
  EXPECT_EQ(open_device(2).status().message(), "there is no device 2: the CUDA driver has 2");
}

TEST(CudaDevice, the_device_in_use_is_that_of_the_thread) {
  EXPECT_EQ(device_in_use(), nullptr);
  const CurrentDevice outer(0);
  EXPECT_EQ(device_in_use()->number(), 0);
  {
    const CurrentDevice inner(1);
    EXPECT_EQ(device_in_use()->number(), 1);
  }
  EXPECT_EQ(device_in_use()->number(), 0);
  std::jthread([] { EXPECT_EQ(device_in_use(), nullptr); }).join();
}

TEST(CudaDevice, facts_tell_kinds_of_memory_apart) {
  const CurrentDevice device(1);
  void* const memory = *device->allocate(1000);
  const MemoryFacts facts = *device->facts(static_cast<std::byte*>(memory) + 999);
  EXPECT_EQ(facts.kind, MemoryKind::device);
  EXPECT_EQ(facts.device, 1);
  EXPECT_EQ(facts.begin, reinterpret_cast<std::uintptr_t>(memory));
  EXPECT_EQ(facts.bytes, 1000);
  const Pinned pinned(*device, 4096);
  EXPECT_EQ(device->facts(pinned.at() + 4095)->kind, MemoryKind::pinned);
  EXPECT_EQ(device->facts(&facts)->kind, MemoryKind::host);
  EXPECT_EQ(device->facts(nullptr)->kind, MemoryKind::host);
  EXPECT_OK(device->release(memory));
  EXPECT_EQ(device->facts(memory)->kind, MemoryKind::host);
}

TEST(CudaDevice, memory_is_pinned_once_for_all_that_ask) {
  const CurrentDevice device(0);
  const Pinned pinned(*device, 4096);
  EXPECT_OK(device->pin(pinned.at(), 4096, false));
}

TEST(CudaDevice, pages_that_cannot_be_written_are_pinned_for_reading_alone) {
  const CurrentDevice device(0);
  void* const pages = mmap(nullptr, 4096, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_TRUE(device->abilities().pins_read_only);
  const Status refused = device->pin(pages, 4096, false);
  EXPECT_EQ(refused.code(), Code::device_error);
  EXPECT_NE(refused.message().find("cuMemHostRegister: CUDA_ERROR_INVALID_VALUE (1): "),
            std::string::npos)
      << refused.message();
  EXPECT_OK(device->pin(pages, 4096, true));
  EXPECT_OK(device->unpin(pages));
  munmap(pages, 4096);
}

TEST(CudaDevice, a_queue_waits_for_words_moments_and_functions_of_the_host) {
  const CurrentDevice device(0);
  const OnDevice first = eight_bytes(device, 1), second = eight_bytes(device, 2);
  const Pinned words(*device, 4096);
  const DeviceQueue early = *device->make_queue(false), late = *device->make_queue(true);
  const DeviceMoment moment = *device->make_moment();
  EXPECT_TRUE(*device->is_past(moment));  // it was never recorded
  EXPECT_OK(device->wait_word(early, words.word(), 7));
  EXPECT_OK(device->copy(early, first.at(), second.at(), 8));
  EXPECT_OK(device->record(early, moment));
  EXPECT_OK(device->wait(late, moment));
  static std::atomic<int> called = 0;
  static int five = 5;
  EXPECT_OK(device->call(
      late, [](void* argument) { called = *static_cast<int*>(argument); }, &five));
  EXPECT_OK(device->write_word(late, words.word() + 1, 9));
  EXPECT_FALSE(*device->is_past(moment));
  EXPECT_EQ(called.load(), 0);
  EXPECT_OK(device->write_word(late, words.word() + 2, 1));
  __atomic_store_n(words.word(), 7U, __ATOMIC_RELEASE);
  device.await(late);
  EXPECT_EQ(called.load(), 5);
  EXPECT_EQ(__atomic_load_n(words.word() + 1, __ATOMIC_ACQUIRE), 9);
  EXPECT_TRUE(*device->is_past(moment));
  EXPECT_EQ(value_of(first), 2);
  EXPECT_OK(device->drop_moment(moment));
  EXPECT_OK(device->drop_queue(early));
  EXPECT_OK(device->drop_queue(late));
}

}  // namespace
}  // namespace anyccl::test
