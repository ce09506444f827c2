// Collectives in queues of devices: the bytes are those of the host, whatever is late, and nothing
// of the host waits.

#include "framework/device/device_queues.hpp"

#include <barrier>
#include <chrono>
#include <thread>

#include "c/handle.hpp"
#include "device/device_trial.hpp"
#include "device/in_queues.hpp"
#include "support/effort.hpp"

namespace anyccl::test {
namespace {

OneRank one_of(RankOnDevice& rank) {
  return {rank.comm, rank.device, rank.stream.handle(), rank.queue};
}

const std::vector<Sides> kBothSides{{true, true}, {true, true, Form::issued}};

/// Elements of a call: with few, one kernel may do it, and with many it has several tiles.
Counts counts_of(Collective what, DType type) {
  if (!has_equal_blocks(what)) return {13};
  if (type == DType::bf16) return {13, 9001};
  if (type != DType::f32) return {13};
  return effort<Counts>({13, 300001}, {1, 13, 300001}, {0, 1, 13, 4099, 300001});
}

class CollectivesInQueues : public testing::TestWithParam<Collective> {};

TEST_P(CollectivesInQueues, bytes_are_those_of_the_host) {
  const Collective what = GetParam();
  for (const int ranks : effort<std::vector<int>>({2}, {2, 3}, {1, 2, 3, 4, 5, 8}))
    in_queues(ranks, [&](RankOnDevice& rank) {
      for (const DType type : {DType::f32, DType::bf16, DType::u8, DType::i64})
        for (const std::size_t count : counts_of(what, type))
          for (const int root : {0, ranks - 1})
            for (const bool in_place : {false, true}) {
              SCOPED_TRACE(fmt::format("{} of {} {}, root {}, in place {}", name(what), count,
                                       name_of(type), root, in_place));
              if (!testing::Test::HasFailure())
                compare_with_host(one_of(rank), what, type, count, in_place, root, kBothSides);
            }
    });
}

INSTANTIATE_TEST_SUITE_P(All, CollectivesInQueues, testing::ValuesIn(scheduled()),
                         [](const auto& made) { return std::string(name(made.param)); });

TEST(DeviceQueues, averages_have_the_bits_of_the_host) {
  for (const int ranks : effort<std::vector<int>>({2}, {2, 3}, {2, 3, 5, 8}))
    in_queues(ranks, [&](RankOnDevice& rank) {
      for (const Collective what :
           {Collective::all_reduce, Collective::reduce, Collective::reduce_scatter})
        for (const DType type : {DType::f32, DType::f16, DType::bf16, DType::i32, DType::complex64})
          for (const std::size_t count : counts_of(what, type)) {
            SCOPED_TRACE(fmt::format("{} of {} {}", name(what), count, name_of(type)));
            compare_with_host(one_of(rank), what, type, count, false, 1, kBothSides, anycclAvg);
          }
    });
}

/// With a plan that does not make each result in one step, and publishes sums where results are.
TEST(DeviceQueues, averages_of_a_ring_have_the_bits_of_the_host) {
  in_queues(3, [&](RankOnDevice& rank) {
    CommunicatorConfig config;
    config.fields.algo = "ring";
    config.fields.deviceQueues = 1;
    auto ring = rank.comm.split(0, 0, config);
    ASSERT_OK(ring.status());
    const OneRank one{*ring, rank.device, rank.stream.handle(), rank.queue};
    for (const Collective what : {Collective::all_reduce, Collective::reduce_scatter})
      for (const bool in_place : {false, true}) {
        SCOPED_TRACE(fmt::format("{}, in place {}", name(what), in_place));
        compare_with_host(one, what, DType::f32, 300001, in_place, 0, kBothSides, anycclAvg);
      }
  });
}

/// Also those of small types, where one step makes each result.
TEST(DeviceQueues, averages_are_in_queues) {
  in_queues(2, [](RankOnDevice& rank) {
    for (const anycclDataType_t type : {anycclFloat32, anycclBfloat16, anycclFloat16}) {
      const OnDevice x = rank.put(Floats(kMany, 2));
      anycclCall_t call{};
      call.size = sizeof call;
      call.collective = anycclCollAllReduce;
      call.sendbuff = call.recvbuff = x.at();
      call.count = kMany;
      call.datatype = type;
      call.op = anycclAvg;
      anycclWork_t work = nullptr;
      ASSERT_EQ(anycclIssue(&call, rank.comm.handle(), &work), anycclSuccess) << rank.last_error();
      int number = ANYCCL_NO_DEVICE;
      EXPECT_EQ(anycclWorkGetDevice(work, &number), anycclSuccess);
      EXPECT_EQ(number, rank.device->number());
      EXPECT_EQ(anycclWorkWait(work), anycclSuccess) << rank.last_error();
      EXPECT_EQ(anycclWorkFree(work), anycclSuccess);
    }
  });
}

TEST(DeviceQueues, a_call_returns_at_once_and_the_stream_waits_for_it) {
  in_queues(2, [](RankOnDevice& rank) {
    const float me = static_cast<float>(index(rank.comm.rank()));
    const OnDevice x = rank.put(Floats(kMany, me)), sum = rank.put(Floats(kMany, 9));
    const OnDevice copy = rank.put(Floats(kMany, 9));
    HeldUp held(rank, rank.queue);
    EXPECT_EQ(rank.all_reduce(x.at(), sum.at(), kMany), anycclSuccess) << rank.last_error();
    EXPECT_OK(rank.device->copy(rank.queue, copy.at(), sum.at(), kMany * sizeof(float)));
    held.go_on();
    rank.device.await(rank.queue);
    EXPECT_EQ(floats_on(copy), Floats(kMany, 1));
  });
}

/// The stream writes the input before the call, and something else into it afterwards.
TEST(DeviceQueues, the_input_is_what_the_stream_has_by_then) {
  in_queues(2, [](RankOnDevice& rank) {
    const float me = static_cast<float>(index(rank.comm.rank()) + 1);
    const OnDevice x = rank.put(Floats(kMany, 100)), mine = rank.put(Floats(kMany, me)),
                   other = rank.put(Floats(kMany, 100)), sum = rank.put(Floats(kMany, 9));
    constexpr std::size_t kBytes = kMany * sizeof(float);
    for (int i = 0; i < 5; ++i) {
      HeldUp held(rank, rank.queue);
      EXPECT_OK(rank.device->copy(rank.queue, x.at(), mine.at(), kBytes));
      EXPECT_EQ(rank.all_reduce(x.at(), sum.at(), kMany), anycclSuccess) << rank.last_error();
      EXPECT_OK(rank.device->copy(rank.queue, x.at(), other.at(), kBytes));
      held.go_on();
      rank.device.await(rank.queue);
      EXPECT_EQ(floats_on(sum), Floats(kMany, 3));
    }
  });
}

/// It has more calls in its queues than it has slots, before the others come to the first.
TEST(DeviceQueues, a_root_does_not_run_over_its_readers) {
  static std::barrier both(2);
  in_queues(2, [](RankOnDevice& rank) {
    constexpr std::size_t kCalls = 40, kCount = 1000;
    const bool is_root = rank.comm.rank() == Rank{0};
    Floats values;
    for (std::size_t i = 0; i < kCalls * kCount; ++i) values.push_back(static_cast<float>(i));
    const OnDevice x = rank.put(is_root ? values : Floats(values.size(), 0));
    const auto call_all = [&] {
      for (std::size_t i = 0; i < kCalls; ++i) {
        std::byte* const part = x.at() + i * kCount * sizeof(float);
        EXPECT_EQ(anycclBroadcast(part, part, kCount, anycclFloat32, 0, rank.comm.handle(),
                                  rank.stream.handle()),
                  anycclSuccess)
            << rank.last_error();
      }
    };
    if (is_root) {
      call_all();
      both.arrive_and_wait();
    } else {
      HeldUp held(rank, rank.queue);
      call_all();
      both.arrive_and_wait();
      // Nothing tells when the root's queues stand still. With less time the test sees less.
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      held.go_on();
    }
    rank.device.await(rank.queue);
    EXPECT_EQ(floats_on(x), values);
  });
}

TEST(DeviceQueues, a_stream_waits_for_a_work_and_not_for_a_call_that_is_issued) {
  in_queues(2, [](RankOnDevice& rank) {
    const OnDevice x = rank.put(Floats(kMany, 1)), sum = rank.put(Floats(kMany, 9)),
                   copy = rank.put(Floats(kMany, 9));
    const DeviceQueue other = *rank.device->make_queue(false);
    const Stream waits = *Stream::wrap(rank.device->number(), other);
    HeldUp held(rank, rank.queue);
    const anycclWork_t work = issue(rank, sum_of(rank, x.at(), sum.at(), kMany));
    EXPECT_EQ(anycclWorkWaitStream(work, waits.handle()), anycclSuccess);
    EXPECT_OK(rank.device->copy(other, copy.at(), sum.at(), kMany * sizeof(float)));
    EXPECT_FALSE(is_done(work));
    held.go_on();
    rank.device.await(other);
    expect_complete(rank, work);
    EXPECT_EQ(floats_on(copy), Floats(kMany, 2));
    EXPECT_OK(rank.device->drop_queue(other));
  });
}

TEST(DeviceQueues, a_call_of_a_group_sees_what_the_one_before_it_has_written) {
  in_queues(2, [](RankOnDevice& rank) {
    const float me = static_cast<float>(index(rank.comm.rank()) + 1);
    const OnDevice x = rank.put(Floats(kMany, me)), y = rank.put(Floats(kMany, 100)),
                   z = rank.put(Floats(kMany, 100));
    ASSERT_EQ(anycclGroupStart(), anycclSuccess);
    EXPECT_EQ(rank.all_reduce(x.at(), y.at(), kMany), anycclSuccess);
    EXPECT_EQ(rank.all_reduce(y.at(), z.at(), kMany), anycclSuccess);
    ASSERT_EQ(anycclGroupEnd(), anycclSuccess) << rank.last_error();
    rank.device.await(rank.queue);
    EXPECT_EQ(floats_on(z), Floats(kMany, 6));
  });
}

TEST(DeviceQueues, a_stream_waits_for_a_call_of_a_group_with_an_error) {
  std::barrier looked(2);
  in_queues(2, [&](RankOnDevice& rank) {
    const OnDevice x = rank.put({1});
    const DeviceQueue captured = *rank.device->make_queue(false);
    const Stream stream = *Stream::wrap(rank.device->number(), captured);
    const auto begin =
        ModelledTime::find<cuda::Error (*)(cuda::Stream, int)>("cuStreamBeginCapture_v2");
    const auto end =
        ModelledTime::find<cuda::Error (*)(cuda::Stream, void**)>("cuStreamEndCapture");
    HeldUp held(rank, rank.queue);
    if (rank.comm.rank() == Rank{0}) held.go_on();  // its call waits for the other rank's
    const auto captured_stream = reinterpret_cast<cuda::Stream>(captured);
    ASSERT_EQ(begin(captured_stream, 0), 0);
    ASSERT_EQ(anycclGroupStart(), anycclSuccess);
    EXPECT_EQ(rank.all_reduce(x.at(), x.at(), 1), anycclSuccess);
    EXPECT_EQ(anycclAllReduce(x.at(), x.at(), 1, anycclFloat32, anycclSum, rank.comm.handle(),
                              stream.handle()),
              anycclSuccess);
    EXPECT_EQ(anycclGroupEnd(), anycclInvalidUsage);
    void* graph = nullptr;
    ASSERT_EQ(end(captured_stream, &graph), 0);
    const DeviceMoment after = *rank.device->make_moment();
    EXPECT_OK(rank.device->record(rank.queue, after));
    std::this_thread::sleep_for(
        std::chrono::milliseconds(20));  // a stream that is not held is past
    EXPECT_FALSE(*rank.device->is_past(after));
    looked.arrive_and_wait();
    held.go_on();
    rank.device.await(rank.queue);
    EXPECT_EQ(floats_on(x), Floats{2});
    EXPECT_OK(rank.device->drop_moment(after));
    EXPECT_OK(rank.device->drop_queue(captured));
  });
}

TEST(DeviceQueues, groups_and_batches_have_calls_in_queues_beside_others) {
  in_queues(2, [](RankOnDevice& rank) {
    const float me = static_cast<float>(index(rank.comm.rank()) + 1);
    const OnDevice x = rank.put({me}), sum = rank.put({0}), mean = rank.put({0}),
                   got = rank.put({0});
    Floats on_host{me}, host_sum{0};
    const anycclComm_t comm = rank.comm.handle();
    anycclCall_t calls[] = {sum_of(rank, x.at(), sum.at(), 1), sum_of(rank, x.at(), mean.at(), 1),
                            call_of(anycclCollAllReduce, on_host.data(), host_sum.data(), 1)};
    anycclCollConfig_t config = ANYCCL_COLLCONFIG_INITIALIZER;
    calls[1].op = anycclAvg;
    calls[1].config = &config;  // by copies
    anycclWork_t works[3];
    EXPECT_EQ(anycclIssueAll(calls, 3, comm, works), anycclSuccess) << rank.last_error();
    for (const anycclWork_t work : works) expect_complete(rank, work);
    EXPECT_EQ(floats_on(sum), Floats{3});
    EXPECT_EQ(floats_on(mean), Floats{1.5F});
    EXPECT_EQ(host_sum, Floats{3});

    const int other = 1 - index(rank.comm.rank());
    anycclGroupStart();
    EXPECT_EQ(anycclSend(x.at(), 1, anycclFloat32, other, comm, nullptr), anycclSuccess);
    EXPECT_EQ(anycclRecv(got.at(), 1, anycclFloat32, other, comm, nullptr), anycclSuccess);
    EXPECT_EQ(anycclAllReduce(sum.at(), sum.at(), 1, anycclFloat32, anycclProd, comm, nullptr),
              anycclSuccess);
    EXPECT_EQ(anycclAllReduce(on_host.data(), host_sum.data(), 1, anycclFloat32, anycclMax, comm,
                              nullptr),
              anycclSuccess);
    EXPECT_EQ(anycclGroupEnd(), anycclSuccess) << rank.last_error();
    EXPECT_EQ(floats_on(got), Floats{3 - me});
    EXPECT_EQ(floats_on(sum), Floats{9});
    EXPECT_EQ(host_sum, Floats{2});
  });
}

/// Else it could end, and take its memory away.
TEST(DeviceQueues, a_root_with_slots_on_the_device_waits_for_its_readers) {
  const CurrentDevice device(0);
  std::barrier looked(2);
  run_ranks(2, [&](Communicator& comm) {
    ASSERT_EQ(anycclCommSetDevice(comm.handle(), 0), anycclSuccess);
    use_queues(comm);
    RankOnDevice rank(comm);
    const OnDevice x = rank.put({1});
    looked.arrive_and_wait();  // what put() unpins waits for all streams of the device
    auto held = std::make_unique<HeldUp>(rank, rank.queue);
    if (comm.rank() == Rank{0}) held->go_on();
    anycclCall_t call = call_of(anycclCollBroadcast, x.at(), x.at(), 1);
    call.stream = rank.stream.handle();
    anycclWork_t work = nullptr;
    ASSERT_EQ(anycclIssue(&call, comm.handle(), &work), anycclSuccess) << rank.last_error();
    EXPECT_EQ(anycclWorkWaitFor(work, 100), anycclInProgress);
    looked.arrive_and_wait();
    held->go_on();
    EXPECT_EQ(anycclWorkWait(work), anycclSuccess) << rank.last_error();
    EXPECT_EQ(anycclWorkFree(work), anycclSuccess);
    held.reset();
    looked.arrive_and_wait();
  });
}

/// The slots of a rank that uses queues of device 0 from now on.
DeviceSlots* slots_on_one_device(Communicator& comm) {
  EXPECT_EQ(anycclCommSetDevice(comm.handle(), 0), anycclSuccess);
  use_queues(comm);
  return comm.handle()->device.queues.load()->wires().device_slots();
}

TEST(DeviceQueues, slots_of_ranks_with_one_device_are_used_again_by_later_communicators) {
  const CurrentDevice device(0);
  std::byte* first = nullptr;
  for (int round = 0; round < 3; ++round)
    run_ranks(2, [&](Communicator& comm) {
      DeviceSlots* const slots = slots_on_one_device(comm);
      ASSERT_NE(slots, nullptr);
      EXPECT_NE(slots->of(0), slots->of(1));
      if (comm.rank() != Rank{0}) return;
      std::byte* const low = std::min(slots->of(0), slots->of(1));
      EXPECT_TRUE(round == 0 || low == first);
      first = low;
    });
}

}  // namespace
}  // namespace anyccl::test
