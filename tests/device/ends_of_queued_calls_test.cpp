// What ends calls in queues of devices, and what is refused there.

#include <array>
#include <barrier>
#include <chrono>
#include <thread>

#include "device/in_queues.hpp"

namespace anyccl::test {
namespace {

anycclResult_t async_error(const RankOnDevice& rank) {
  anycclResult_t result = anycclSuccess;
  EXPECT_EQ(anycclCommGetAsyncError(rank.comm.handle(), &result), anycclSuccess);
  return result;
}

/// One kernel does the call, or several commands do.
constexpr std::size_t kCounts[] = {1, 4096};

TEST(DeviceQueues, an_abort_lets_the_stream_go_on) {
  for (const std::size_t count : kCounts) {
    std::barrier aborted(2);
    in_queues(2, [&](RankOnDevice& rank) {
      const OnDevice x = rank.put(Floats(count, 1));
      if (rank.comm.rank() == Rank{0}) {
        EXPECT_EQ(rank.all_reduce(x.at(), x.at(), count), anycclSuccess);
        EXPECT_OK(rank.comm.abort());
        rank.device.await(rank.queue);
      }
      aborted.arrive_and_wait();
    });
  }
}

TEST(DeviceQueues, a_communicator_may_be_destroyed_behind_its_last_call) {
  in_queues(2, [](RankOnDevice& rank) {
    const OnDevice x = rank.put({1});
    auto part = rank.comm.split(0, 0);
    ASSERT_OK(part.status());
    use_queues(*part);
    HeldUp held(rank, rank.queue);
    EXPECT_EQ(anycclAllReduce(x.at(), x.at(), 1, anycclFloat32, anycclSum, part->handle(),
                              rank.stream.handle()),
              anycclSuccess);
    std::jthread later([&] {
      // So long that the other rank is through, if it does not wait; in any case the sum is right.
      const bool is_late = rank.comm.rank() == Rank{0};
      std::this_thread::sleep_for(std::chrono::milliseconds(is_late ? 50 : 0));
      held.go_on();
    });
    EXPECT_OK(part->destroy());
    later.join();
    rank.device.await(rank.queue);
    EXPECT_EQ(floats_on(x), Floats{2});
  });
}

void expect_named_that_does_not_call(std::size_t count) {
  std::barrier over(2);
  in_queues(2, [&](RankOnDevice& rank) {
    const OnDevice x = rank.put(Floats(count, 1));
    if (rank.comm.rank() == Rank{0}) {
      anycclCall_t call = sum_of(rank, x.at(), x.at(), count);
      call.timeout_ms = 50;
      EXPECT_EQ(anycclRun(&call, rank.comm.handle()), anycclSuccess) << rank.last_error();
      rank.device.await(rank.queue);
      EXPECT_EQ(async_error(rank), anycclTimeout);
      EXPECT_NE(rank.last_error().find("rank 1"), std::string::npos) << rank.last_error();
    }
    over.arrive_and_wait();
  });
}

TEST(DeviceQueues, a_rank_that_does_not_call_is_named_at_the_time_limit) {
  for (const std::size_t count : kCounts) expect_named_that_does_not_call(count);
}

void expect_named_whose_stream_does_not_come(std::size_t count) {
  std::barrier over(2);
  in_queues(2, [&](RankOnDevice& rank) {
    const OnDevice x = rank.put(Floats(count, 1));
    anycclCall_t call = sum_of(rank, x.at(), x.at(), count);
    const auto run = [&] {
      EXPECT_EQ(anycclRun(&call, rank.comm.handle()), anycclSuccess) << rank.last_error();
    };
    if (rank.comm.rank() == Rank{1}) {
      const HeldUp held(rank, rank.queue);
      run();
      over.arrive_and_wait();
      return;
    }
    call.timeout_ms = 50;
    run();
    rank.device.await(rank.queue);
    EXPECT_EQ(async_error(rank), anycclTimeout);
    EXPECT_NE(rank.last_error().find("rank 1"), std::string::npos) << rank.last_error();
    over.arrive_and_wait();
  });
}

TEST(DeviceQueues, a_rank_whose_stream_does_not_come_is_named_at_the_time_limit) {
  for (const std::size_t count : kCounts) expect_named_whose_stream_does_not_come(count);
}

TEST(DeviceQueues, memory_of_the_host_on_one_rank_is_an_error_on_all) {
  in_queues(2, [](RankOnDevice& rank) {
    const OnDevice x = rank.put({1});
    Floats y{1};
    void* const buffer = rank.comm.rank() == Rank{0} ? static_cast<void*>(x.at()) : y.data();
    EXPECT_REFUSED(
        anycclInvalidUsage, "device queues",
        anycclAllReduce(buffer, buffer, 1, anycclFloat32, anycclSum, rank.comm.handle(), nullptr));
  });
}

TEST(DeviceQueues, pageable_memory_beside_memory_of_the_device_is_refused) {
  in_queues(2, [](RankOnDevice& rank) {
    const OnDevice x = rank.put({1});
    Floats y{1};
    EXPECT_REFUSED(anycclInvalidArgument, "pinned", rank.all_reduce(x.at(), y.data(), 1));
    const Pinned pinned(*rank.device, 4096);
    EXPECT_EQ(rank.all_reduce(x.at(), pinned.at(), 1), anycclSuccess) << rank.last_error();
    rank.device.await(rank.queue);
    EXPECT_EQ(*reinterpret_cast<const float*>(pinned.at()), 2);
  });
}

TEST(DeviceQueues, a_stream_that_is_captured_is_refused) {
  in_queues(2, [](RankOnDevice& rank) {
    const auto begin =
        ModelledTime::find<cuda::Error (*)(cuda::Stream, int)>("cuStreamBeginCapture_v2");
    const auto end =
        ModelledTime::find<cuda::Error (*)(cuda::Stream, void**)>("cuStreamEndCapture");
    const auto stream = reinterpret_cast<cuda::Stream>(rank.queue);
    const OnDevice x = rank.put({1});
    EXPECT_EQ(begin(stream, 0), 0);
    EXPECT_REFUSED(anycclInvalidUsage, "captured", rank.all_reduce(x.at(), x.at(), 1));
    void* graph = nullptr;
    EXPECT_EQ(end(stream, &graph), 0);
    EXPECT_EQ(rank.all_reduce(x.at(), x.at(), 1), anycclSuccess) << rank.last_error();
    rank.device.await(rank.queue);
    EXPECT_EQ(floats_on(x), Floats{2});
  });
}

TEST(DeviceQueues, all_ranks_hear_which_one_has_no_device) {
  on_devices(2, [](RankOnDevice& rank) {
    const anycclComm_t comm = rank.comm.handle();
    const bool lacks_it = rank.comm.rank() == Rank{1};
    const int device = rank.device->number();
    EXPECT_EQ(anycclCommSetDevice(comm, lacks_it ? ANYCCL_NO_DEVICE : device), anycclSuccess);
    EXPECT_REFUSED(anycclUnsupported, "rank 1: it has no device", anycclCommUseDeviceQueues(comm));
    EXPECT_EQ(anycclCommSetDevice(comm, device), anycclSuccess);
    EXPECT_EQ(anycclCommUseDeviceQueues(comm), anycclSuccess) << rank.last_error();
    EXPECT_REFUSED(anycclInvalidUsage, "anycclCommUseDeviceQueues",
                   anycclCommSetDevice(comm, ANYCCL_NO_DEVICE));
    const OnDevice x = rank.put({1});
    EXPECT_EQ(rank.all_reduce(x.at(), x.at(), 1), anycclSuccess);
    rank.device.await(rank.queue);
    EXPECT_EQ(floats_on(x), Floats{2});
  });
}

}  // namespace
}  // namespace anyccl::test
