// Calls that are issued, prepared or run for a time, with memory of a device.

#include <array>
#include <atomic>

#include "device/rank_on_device.hpp"

namespace anyccl::test {
namespace {

anycclCall_t call_of(anycclCollective_t what, const void* in, void* out, std::size_t count,
                     anycclStream_t stream = nullptr, int peer = 0) {
  anycclCall_t call{};
  call.size = sizeof call;
  call.collective = what;
  call.sendbuff = in;
  call.recvbuff = out;
  call.count = count;
  call.datatype = anycclFloat32;
  call.op = anycclSum;
  call.root = peer;
  call.stream = stream;
  return call;
}

anycclCall_t sum_of(const RankOnDevice& rank, const void* in, void* out, std::size_t count) {
  return call_of(anycclCollAllReduce, in, out, count, rank.stream.handle());
}

anycclWork_t issue(const RankOnDevice& rank, const anycclCall_t& call) {
  anycclWork_t work = nullptr;
  EXPECT_EQ(anycclIssue(&call, rank.comm.handle(), &work), anycclSuccess) << rank.last_error();
  return work;
}

void expect_complete(const RankOnDevice& rank, anycclWork_t work) {
  EXPECT_EQ(anycclWorkWait(work), anycclSuccess) << rank.last_error();
  EXPECT_EQ(anycclWorkFree(work), anycclSuccess);
}

bool is_done(anycclWork_t work) {
  int done = 0;
  EXPECT_EQ(anycclWorkTest(work, &done), anycclSuccess);
  return done != 0;
}

/// Whether it is done, with or without an error.
bool is_over(anycclWork_t work) {
  int done = 0;
  static_cast<void>(anycclWorkTest(work, &done));
  return done != 0;
}

/// Work of a queue that waits for the host.
class HeldUp {
 public:
  HeldUp(const RankOnDevice& rank, DeviceQueue queue) : rank_(rank), word_(*rank.device, 4096) {
    EXPECT_OK(rank.device->wait_word(queue, word_.word(), 1));
  }
  ~HeldUp() {
    go_on();
    rank_.device.await(rank_.queue);
  }
  void go_on() { __atomic_store_n(word_.word(), 1U, __ATOMIC_RELEASE); }

 private:
  const RankOnDevice& rank_;
  const Pinned word_;
};

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

/// So many that their copies take longer than what a test does meanwhile.
constexpr std::size_t kMany = 2 << 20;

TEST(IssuedOnDevice, the_end_of_a_communicator_completes_what_was_issued) {
  on_devices(2, [](RankOnDevice& rank) {
    const OnDevice x = rank.put({1}), y = rank.put(Floats(kMany, 2.0F));
    auto part = rank.comm.split(0, 0);
    ASSERT_OK(part.status());
    const anycclCall_t forgotten = sum_of(rank, x.at(), x.at(), 1);
    const anycclCall_t kept = sum_of(rank, y.at(), y.at(), kMany);
    anycclWork_t work = nullptr;
    EXPECT_EQ(anycclIssue(&forgotten, part->handle(), &work), anycclSuccess);
    EXPECT_EQ(anycclWorkFree(work), anycclSuccess);
    EXPECT_EQ(anycclIssue(&kept, part->handle(), &work), anycclSuccess);
    EXPECT_OK(part->destroy());
    EXPECT_TRUE(is_done(work));
    expect_complete(rank, work);
    EXPECT_EQ(floats_on(x), Floats{2});
    EXPECT_EQ(floats_on(y), Floats(kMany, 4.0F));
  });
}

TEST(IssuedOnDevice, a_prepared_call_starts_again_when_its_last_result_is_on_the_device) {
  on_devices(1, [](RankOnDevice& rank) {
    const OnDevice x = rank.put(Floats(kMany, 1.0F));
    const anycclCall_t call = sum_of(rank, x.at(), x.at(), kMany);
    anycclPrepared_t prepared = nullptr;
    EXPECT_EQ(anycclPrepare(&call, rank.comm.handle(), &prepared), anycclSuccess);
    for (int i = 0; i < 5; ++i) {
      anycclWork_t work = nullptr, again = nullptr;
      EXPECT_EQ(anycclStart(prepared, &work), anycclSuccess);
      anycclResult_t result = anycclStart(prepared, &again);
      for (; result == anycclInvalidUsage; result = anycclStart(prepared, &again))
        std::this_thread::yield();
      EXPECT_EQ(result, anycclSuccess);
      EXPECT_TRUE(is_done(work));
      expect_complete(rank, work);
      expect_complete(rank, again);
    }
    EXPECT_EQ(anycclPreparedFree(prepared), anycclSuccess);
  });
}

TEST(IssuedOnDevice, an_abort_ends_a_call_whose_stream_does_not_come) {
  on_devices(2, [](RankOnDevice& rank) {
    const OnDevice x = rank.put({1});
    const HeldUp held(rank, rank.queue);
    const anycclWork_t work = issue(rank, sum_of(rank, x.at(), x.at(), 1));
    EXPECT_OK(rank.comm.abort());
    EXPECT_EQ(anycclWorkWait(work), anycclAborted);
    EXPECT_EQ(anycclWorkFree(work), anycclSuccess);
  });
}

TEST(IssuedOnDevice, nothing_is_written_after_a_work_has_ended) {
  on_devices(2, [](RankOnDevice& rank) {
    const OnDevice x = rank.put(Floats(kMany, 1.0F));
    const Pinned other(*rank.device, kMany * sizeof(float));
    for (int i = 0; i < 5; ++i) {
      auto part = rank.comm.split(0, 0);
      ASSERT_OK(part.status());
      const anycclCall_t call = sum_of(rank, x.at(), x.at(), kMany);
      anycclWork_t work = nullptr;
      EXPECT_EQ(anycclIssue(&call, part->handle(), &work), anycclSuccess);
      anycclWorkWaitFor(work, static_cast<unsigned>(i));  // the other rank may have aborted it
      EXPECT_OK(part->abort());
      anycclWorkWait(work);
      EXPECT_TRUE(is_over(work));
      EXPECT_OK(rank.device->copy(rank.queue, x.at(), other.at(), kMany * sizeof(float)));
      rank.device.await(rank.queue);
      EXPECT_EQ(anycclWorkFree(work), anycclSuccess);
      EXPECT_EQ(floats_on(x), Floats(kMany, 0.0F));
    }
  });
}

TEST(IssuedOnDevice, the_shortest_time_limit_of_calls_that_travel_as_one_counts) {
  on_devices(1, [](RankOnDevice& rank) {
    const OnDevice x = rank.put({1}), y = rank.put({2});
    const HeldUp held(rank, rank.queue);
    std::array calls{sum_of(rank, x.at(), x.at(), 1), sum_of(rank, y.at(), y.at(), 1)};
    calls[1].timeout_ms = 20;
    std::array<anycclWork_t, 2> works{};
    EXPECT_EQ(anycclIssueAll(calls.data(), 2, rank.comm.handle(), works.data()), anycclSuccess);
    for (const anycclWork_t work : works) {
      EXPECT_EQ(anycclWorkWait(work), anycclTimeout);
      EXPECT_EQ(anycclWorkFree(work), anycclSuccess);
    }
  });
}

TEST(IssuedOnDevice, a_time_limit_can_be_changed_while_the_stream_does_not_come) {
  on_devices(1, [](RankOnDevice& rank) {
    const OnDevice x = rank.put({1});
    HeldUp held(rank, rank.queue);
    anycclCall_t call = sum_of(rank, x.at(), x.at(), 1);
    call.timeout_ms = 50;
    const anycclWork_t longer = issue(rank, call);
    EXPECT_EQ(anycclWorkLimit(longer, 60000), anycclSuccess);
    EXPECT_EQ(anycclWorkWaitFor(longer, 100), anycclInProgress);
    EXPECT_NE(std::string(anycclGetLastError(nullptr)).find("its stream of the device"),
              std::string::npos)
        << anycclGetLastError(nullptr);
    call.timeout_ms = 0;
    const anycclWork_t shorter = issue(rank, call);
    EXPECT_EQ(anycclWorkLimit(shorter, 20), anycclSuccess);
    EXPECT_EQ(anycclWorkWait(shorter), anycclTimeout);
    for (const anycclWork_t work : {longer, shorter})
      EXPECT_EQ(anycclWorkFree(work), anycclSuccess);
  });
}

TEST(IssuedOnDevice, a_call_that_is_run_for_a_time_does_not_wait_for_a_sequence) {
  on_devices(1, [](RankOnDevice& rank) {
    const anycclComm_t comm = rank.comm.handle();
    const OnDevice x = rank.put({3});
    const anycclCall_t call = sum_of(rank, x.at(), x.at(), 1);
    std::jthread other([&] { EXPECT_EQ(anycclSequenceBegin(comm, 60000), anycclSuccess); });
    other.join();
    anycclWork_t work = nullptr;
    EXPECT_EQ(anycclRunFor(&call, comm, 10, &work), anycclInProgress);
    EXPECT_EQ(work, nullptr);
    EXPECT_EQ(anycclSequenceEnd(comm), anycclSuccess);
    EXPECT_EQ(anycclRunFor(&call, comm, 60000, &work), anycclSuccess);
    EXPECT_EQ(floats_on(x), Floats{3});
  });
}

TEST(IssuedOnDevice, a_communicator_that_has_given_up_its_device_completes_what_was_issued) {
  on_devices(1, [](RankOnDevice& rank) {
    auto part = rank.comm.split(0, 0);
    ASSERT_OK(part.status());
    const OnDevice x = rank.put(Floats(kMany, 2.0F));
    const anycclCall_t call = sum_of(rank, x.at(), x.at(), kMany);
    anycclWork_t work = nullptr;
    EXPECT_EQ(anycclIssue(&call, part->handle(), &work), anycclSuccess);
    EXPECT_EQ(anycclCommSetDevice(part->handle(), ANYCCL_NO_DEVICE), anycclSuccess);
    EXPECT_OK(part->destroy());
    EXPECT_TRUE(is_done(work));
    expect_complete(rank, work);
  });
}

TEST(IssuedOnDevice, a_prepared_call_of_a_communicator_that_is_gone_does_not_start) {
  on_devices(1, [](RankOnDevice& rank) {
    auto part = rank.comm.split(0, 0);
    ASSERT_OK(part.status());
    const OnDevice x = rank.put({1});
    const anycclCall_t call = sum_of(rank, x.at(), x.at(), 1);
    anycclPrepared_t prepared = nullptr;
    EXPECT_EQ(anycclPrepare(&call, part->handle(), &prepared), anycclSuccess);
    EXPECT_OK(part->destroy());
    anycclWork_t work = nullptr;
    EXPECT_EQ(anycclStart(prepared, &work), anycclInvalidUsage);
    EXPECT_EQ(work, nullptr);
    EXPECT_EQ(anycclPreparedFree(prepared), anycclSuccess);
  });
}

TEST(IssuedOnDevice, a_time_limit_ends_a_call_whose_stream_does_not_come) {
  on_devices(2, [](RankOnDevice& rank) {
    const OnDevice x = rank.put({1});
    const HeldUp held(rank, rank.queue);
    anycclCall_t call = sum_of(rank, x.at(), x.at(), 1);
    call.timeout_ms = 20;
    const anycclWork_t work = issue(rank, call);
    EXPECT_NE(anycclWorkWait(work), anycclSuccess);
    EXPECT_NE(std::string(anycclGetLastError(nullptr)).find("has not come to the call within 20"),
              std::string::npos)
        << anycclGetLastError(nullptr);
    EXPECT_EQ(anycclWorkFree(work), anycclSuccess);
  });
}

TEST(IssuedOnDevice, calls_that_differ_are_named_on_all_ranks) {
  on_devices(2, [](RankOnDevice& rank) {
    const OnDevice x = rank.put({1, 1});
    const std::size_t count = rank.comm.rank() == Rank{0} ? 2 : 1;
    const anycclWork_t work = issue(rank, sum_of(rank, x.at(), x.at(), count));
    EXPECT_EQ(anycclWorkWait(work), anycclInvalidUsage);
    EXPECT_NE(std::string(anycclGetLastError(nullptr)).find("differs between ranks"),
              std::string::npos);
    EXPECT_EQ(anycclWorkFree(work), anycclSuccess);
    EXPECT_EQ(floats_on(x), (Floats{1, 1}));
  });
}

}  // namespace
}  // namespace anyccl::test
