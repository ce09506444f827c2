// Ranks that share a device pass data on in its memory, if they can open it.

#include <sys/resource.h>

#include <csignal>
#include <functional>
#include <string>

#include "c/handle.hpp"
#include "device/device_memory.hpp"
#include "device/one_machine.hpp"
#include "framework/device/device_queues.hpp"

namespace anyccl::test {
namespace {

using SettingsOf = std::function<Settings(int rank)>;

/// The slots of a rank that uses queues of device 0 from now on; null: they are the host's.
DeviceSlots* slots_of(Communicator& comm) {
  EXPECT_EQ(anycclCommSetDevice(comm.handle(), 0), anycclSuccess);
  EXPECT_EQ(anycclCommUseDeviceQueues(comm.handle()), anycclSuccess)
      << anycclGetLastError(comm.handle());
  return comm.handle()->device.queues.load()->wires().device_slots();
}

/// The sum of 1, 2 ... over all ranks, on device 0.
void expect_right_sum(Communicator& comm) {
  const CurrentDevice device(0);
  const DeviceQueue queue = *device->make_queue(false);
  const Stream stream = *Stream::wrap(0, queue);
  const auto ranks = static_cast<std::uint64_t>(comm.size());
  const OnDevice x = eight_bytes(device, uindex(comm.rank()) + 1);
  EXPECT_EQ(
      anycclAllReduce(x.at(), x.at(), 1, anycclInt64, anycclSum, comm.handle(), stream.handle()),
      anycclSuccess);
  device.await(queue);
  EXPECT_EQ(value_of(x), ranks * (ranks + 1) / 2);
}

void expect_slots(const SettingsOf& settings, bool on_device) {
  expect_all_passed(run_processes(
      2,
      [&](Communicator& comm) {
        EXPECT_EQ(slots_of(comm) != nullptr, on_device);
        expect_right_sum(comm);
      },
      settings));
}

TEST(DeviceSlots, processes_with_one_device_have_them) {
  const OneMachine machine;
  expect_slots([&](int) { return machine.settings(); }, true);
}

TEST(DeviceSlots, processes_on_devices_that_are_not_the_same_have_none) {
  expect_slots([](int) { return Settings(); }, false);
}

TEST(DeviceSlots, no_rank_has_them_where_one_cannot_open_memory) {
  const OneMachine machine;
  for (const int which : {0, 1})
    expect_slots(
        [&](int rank) {
          Settings settings = machine.settings();
          if (rank == which) settings.emplace_back("SIMULATED_CUDA_NO_IPC", "1");
          return settings;
        },
        false);
}

/// A file of memory that ranks show each other may have this size at most.
void limit_files(rlim_t bytes) {
  ::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{bytes, bytes};
  EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
}

TEST(DeviceSlots, ranks_without_memory_for_queues_go_by_copies) {
  expect_all_passed(run_processes(2, [](Communicator& comm) {
    ASSERT_EQ(anycclCommSetDevice(comm.handle(), 0), anycclSuccess);
    expect_right_sum(comm);  // opens the driver
    CommunicatorConfig config;
    config.fields.deviceQueues = 1;
    if (comm.rank() == Rank{1}) limit_files(4 << 20);
    auto part = comm.split(0, 0, config);
    ASSERT_OK(part.status());
    EXPECT_EQ(part->handle()->device.queues.load(), nullptr);
    expect_right_sum(*part);
  }));
}

}  // namespace
}  // namespace anyccl::test
