// Calls that are issued, prepared or run for a time, with memory of a device.

#include <array>
#include <atomic>

#include "device/issued_calls.hpp"

namespace anyccl::test {
namespace {

TEST(IssuedOnDevice, a_work_is_complete_when_the_result_is_on_the_device) {
  on_devices(3, [](RankOnDevice& rank) {
    const OnDevice x = rank.put({1, 2}), sum = rank.put({0, 0});
    expect_complete(rank, issue(rank, sum_of(rank, x.at(), sum.at(), 2)));
    EXPECT_EQ(floats_on(sum), (Floats{3, 6}));
    anycclCall_t call = sum_of(rank, sum.at(), sum.at(), 2);
    call.stream = nullptr;
    expect_complete(rank, issue(rank, call));
    EXPECT_EQ(floats_on(sum), (Floats{9, 18}));
  });
}

TEST(IssuedOnDevice, the_caller_does_not_wait_for_the_stream_and_the_call_does) {
  on_devices(2, [](RankOnDevice& rank) {
    const OnDevice x = rank.put({1, 1}), late = rank.put({5, 5}), sum = rank.put({0, 0});
    HeldUp held(rank, rank.queue);
    EXPECT_OK(rank.device->copy(rank.queue, x.at(), late.at(), 2 * sizeof(float)));
    const anycclWork_t work = issue(rank, sum_of(rank, x.at(), sum.at(), 2));
    EXPECT_EQ(anycclWorkWaitFor(work, 20), anycclInProgress);
    EXPECT_FALSE(is_done(work));
    held.go_on();
    expect_complete(rank, work);
    EXPECT_EQ(floats_on(sum), (Floats{10, 10}));
  });
}

TEST(IssuedOnDevice, no_call_waits_for_the_stream_of_another_one) {
  on_devices(2, [](RankOnDevice& rank) {
    const DeviceQueue other = *rank.device->make_queue(false);
    auto stream = Stream::wrap(rank.device->number(), other);
    ASSERT_OK(stream.status());
    const int peer = 1 - index(rank.comm.rank());
    const OnDevice x = rank.put({1}), sum = rank.put({0}), sent = rank.put({7}),
                   received = rank.put({0});
    HeldUp held(rank, rank.queue);
    const anycclWork_t first = issue(rank, sum_of(rank, x.at(), sum.at(), 1));
    const anycclWork_t receive =
        issue(rank, call_of(anycclCollRecv, nullptr, received.at(), 1, stream->handle(), peer));
    expect_complete(
        rank, issue(rank, call_of(anycclCollSend, sent.at(), nullptr, 1, stream->handle(), peer)));
    int source = -1;
    EXPECT_EQ(anycclWorkWait(receive), anycclSuccess);
    EXPECT_EQ(anycclWorkSource(receive, &source), anycclSuccess);
    EXPECT_EQ(source, peer);
    EXPECT_EQ(anycclWorkFree(receive), anycclSuccess);
    EXPECT_FALSE(is_done(first));
    held.go_on();  // before anything is unpinned, which waits for all queues
    expect_complete(rank, first);
    EXPECT_EQ(floats_on(received), Floats{7});
    EXPECT_EQ(floats_on(sum), Floats{2});
    EXPECT_OK(rank.device->drop_queue(other));
  });
}

TEST(IssuedOnDevice, many_are_open_at_once_and_are_waited_for_in_any_order) {
  on_devices(2, [](RankOnDevice& rank) {
    constexpr std::size_t kCalls = 20;
    std::vector<std::unique_ptr<OnDevice>> there;
    std::vector<anycclWork_t> works;
    for (std::size_t i = 0; i < kCalls; ++i) {
      const Floats x(1 + i * 997, static_cast<float>(i));
      there.push_back(std::make_unique<OnDevice>(rank.device, bytes_of_floats(x)));
      works.push_back(issue(rank, sum_of(rank, there[i]->at(), there[i]->at(), x.size())));
    }
    std::size_t place = 0;
    EXPECT_EQ(anycclWorkWaitAny(works.data(), works.size(), &place), anycclSuccess);
    EXPECT_LT(place, kCalls);
    EXPECT_EQ(anycclWorkWaitAll(works.data(), works.size()), anycclSuccess);
    for (std::size_t i = kCalls; i-- > 0;) {
      expect_complete(rank, works[i]);
      EXPECT_EQ(floats_on(*there[i]), Floats(1 + i * 997, static_cast<float>(2 * i)));
    }
  });
}

TEST(IssuedOnDevice, calls_that_are_issued_together_lie_on_device_and_host) {
  on_devices(2, [](RankOnDevice& rank) {
    const anycclComm_t comm = rank.comm.handle();
    const int peer = 1 - index(rank.comm.rank());
    const OnDevice x = rank.put({1, 2}), y = rank.put({3}), to = rank.put({0});
    Floats host{10, 20};
    const std::array calls{
        call_of(anycclCollAllReduce, x.at(), x.at(), 2),
        call_of(anycclCollAllReduce, host.data(), host.data(), 2),
        call_of(anycclCollAllReduce, y.at(), y.at(), 1),
        call_of(anycclCollSend, host.data(), nullptr, 1, nullptr, peer),
        call_of(anycclCollRecv, nullptr, to.at(), 1, nullptr, peer),
    };
    for (int round = 1; round <= 2; ++round) {
      host = {10, 20};
      std::array<anycclWork_t, calls.size()> works{};
      EXPECT_EQ(anycclIssueAll(calls.data(), calls.size(), comm, works.data()), anycclSuccess)
          << rank.last_error();
      for (const anycclWork_t work : works) expect_complete(rank, work);
      EXPECT_EQ(host, (Floats{20, 40}));
      const float f = static_cast<float>(round * 2);
      EXPECT_EQ(floats_on(x), (Floats{f, 2 * f}));
      EXPECT_EQ(floats_on(y), Floats{3 * f});
      EXPECT_GE(floats_on(to)[0], 10);
    }
  });
}

TEST(IssuedOnDevice, calls_that_are_issued_together_come_after_their_streams) {
  on_devices(2, [](RankOnDevice& rank) {
    const OnDevice x = rank.put({1, 1}), late = rank.put({5, 5}), sum = rank.put({0, 0}),
                   y = rank.put({3});
    HeldUp held(rank, rank.queue);
    EXPECT_OK(rank.device->copy(rank.queue, x.at(), late.at(), 2 * sizeof(float)));
    const std::array calls{sum_of(rank, x.at(), sum.at(), 2), sum_of(rank, y.at(), y.at(), 1)};
    std::array<anycclWork_t, 2> works{};
    EXPECT_EQ(anycclIssueAll(calls.data(), 2, rank.comm.handle(), works.data()), anycclSuccess)
        << rank.last_error();
    EXPECT_EQ(anycclWorkWaitFor(works[0], 20), anycclInProgress);
    held.go_on();
    for (const anycclWork_t work : works) expect_complete(rank, work);
    EXPECT_EQ(floats_on(sum), (Floats{10, 10}));
    EXPECT_EQ(floats_on(y), Floats{6});
  });
}

TEST(IssuedOnDevice, small_calls_that_travel_as_one_have_their_copies_once) {
  on_devices(2, [](RankOnDevice& rank) {
    const OnDevice x = rank.put({1}), y = rank.put({3}), z = rank.put({5});
    std::vector<anycclCall_t> calls;
    for (const OnDevice* const one : {&x, &y, &z})
      calls.push_back(call_of(anycclCollAllReduce, one->at(), one->at(), 1));
    float sum = 1;
    for (int round = 1; round <= 20; ++round) {
      std::array<anycclWork_t, 3> works{};
      EXPECT_EQ(anycclIssueAll(calls.data(), 3, rank.comm.handle(), works.data()), anycclSuccess);
      for (const anycclWork_t work : works) expect_complete(rank, work);
      sum *= 2;
      EXPECT_EQ(floats_on(x), Floats{sum});
      EXPECT_EQ(floats_on(y), Floats{3 * sum});
      EXPECT_EQ(floats_on(z), Floats{5 * sum});
    }
  });
}

TEST(IssuedOnDevice, ranks_with_and_without_a_device_meet_in_calls_that_are_issued_together) {
  on_devices(2, [](RankOnDevice& rank) {
    const bool on_host = rank.comm.rank() == Rank{0};
    Floats there{1, 2}, more{3};
    const OnDevice x = rank.put(there), y = rank.put(more);
    void* const first = on_host ? static_cast<void*>(there.data()) : x.at();
    void* const second = on_host ? static_cast<void*>(more.data()) : y.at();
    const std::array calls{call_of(anycclCollAllReduce, first, first, 2),
                           call_of(anycclCollAllReduce, second, second, 1)};
    std::array<anycclWork_t, 2> works{};
    EXPECT_EQ(anycclIssueAll(calls.data(), 2, rank.comm.handle(), works.data()), anycclSuccess);
    for (const anycclWork_t work : works) expect_complete(rank, work);
    EXPECT_EQ(on_host ? there : floats_on(x), (Floats{2, 4}));
    EXPECT_EQ(on_host ? more : floats_on(y), Floats{6});
  });
}

TEST(IssuedOnDevice, a_call_that_is_run_for_a_time_goes_on_as_a_work) {
  on_devices(2, [](RankOnDevice& rank) {
    const anycclComm_t comm = rank.comm.handle();
    const OnDevice x = rank.put({1}), sum = rank.put({0});
    const anycclCall_t call = sum_of(rank, x.at(), sum.at(), 1);
    anycclWork_t work = nullptr;
    {
      HeldUp held(rank, rank.queue);
      EXPECT_EQ(anycclRunFor(&call, comm, 5, &work), anycclInProgress);
      ASSERT_NE(work, nullptr);
      held.go_on();
      expect_complete(rank, work);
    }
    EXPECT_EQ(floats_on(sum), Floats{2});
    anycclResult_t result = anycclRunFor(&call, comm, 60000, &work);
    EXPECT_EQ(result, anycclSuccess);
    EXPECT_EQ(work, nullptr);
  });
}

TEST(IssuedOnDevice, a_prepared_call_takes_what_its_buffers_hold_at_each_start) {
  on_devices(2, [](RankOnDevice& rank) {
    const OnDevice x = rank.put({1, 2});
    Floats host{1};
    const anycclComm_t comm = rank.comm.handle();
    const anycclCall_t on_device = sum_of(rank, x.at(), x.at(), 2);
    const anycclCall_t on_host = call_of(anycclCollAllReduce, host.data(), host.data(), 1);
    std::array<anycclPrepared_t, 2> prepared{};
    EXPECT_EQ(anycclPrepare(&on_device, comm, &prepared[0]), anycclSuccess) << rank.last_error();
    EXPECT_EQ(anycclPrepare(&on_host, comm, &prepared[1]), anycclSuccess);
    anycclWork_t work = nullptr;
    float factor = 1;
    for (int round = 0; round < 3; ++round) {
      EXPECT_EQ(anycclStart(prepared[0], &work), anycclSuccess) << rank.last_error();
      expect_complete(rank, work);
      factor *= 2;
      EXPECT_EQ(floats_on(x), (Floats{factor, 2 * factor}));
    }
    std::array<anycclWork_t, 2> works{};
    for (int round = 1; round <= 3; ++round) {
      EXPECT_EQ(anycclStartAll(prepared.data(), 2, works.data()), anycclSuccess);
      for (const anycclWork_t one : works) expect_complete(rank, one);
      factor *= 2;
      EXPECT_EQ(floats_on(x), (Floats{factor, 2 * factor}));
      EXPECT_EQ(host[0], static_cast<float>(1 << round));
    }
    for (const anycclPrepared_t one : prepared) EXPECT_EQ(anycclPreparedFree(one), anycclSuccess);
  });
}

TEST(IssuedOnDevice, a_prepared_call_that_is_under_way_does_not_start) {
  on_devices(1, [](RankOnDevice& rank) {
    const OnDevice x = rank.put({1});
    const anycclCall_t call = sum_of(rank, x.at(), x.at(), 1);
    anycclPrepared_t prepared = nullptr;
    EXPECT_EQ(anycclPrepare(&call, rank.comm.handle(), &prepared), anycclSuccess);
    HeldUp held(rank, rank.queue);
    anycclWork_t work = nullptr, again = nullptr;
    EXPECT_EQ(anycclStart(prepared, &work), anycclSuccess);
    EXPECT_EQ(anycclStart(prepared, &again), anycclInvalidUsage);
    EXPECT_EQ(again, nullptr);
    held.go_on();
    expect_complete(rank, work);
    EXPECT_EQ(anycclStart(prepared, &again), anycclSuccess);
    expect_complete(rank, again);
    EXPECT_EQ(anycclPreparedFree(prepared), anycclSuccess);
  });
}

TEST(IssuedOnDevice, a_function_is_told_of_the_end) {
  on_devices(2, [](RankOnDevice& rank) {
    const OnDevice x = rank.put({1});
    std::atomic<int> told = 0;
    HeldUp held(rank, rank.queue);
    const anycclWork_t work = issue(rank, sum_of(rank, x.at(), x.at(), 1));
    EXPECT_EQ(anycclWorkNotify(
                  work, [](void* count) { ++*static_cast<std::atomic<int>*>(count); }, &told),
              anycclSuccess);
    EXPECT_EQ(told.load(), 0);
    held.go_on();
    while (told.load() == 0) std::this_thread::yield();
    EXPECT_TRUE(is_done(work));
    expect_complete(rank, work);
    EXPECT_EQ(floats_on(x), Floats{2});
  });
}

}  // namespace
}  // namespace anyccl::test
