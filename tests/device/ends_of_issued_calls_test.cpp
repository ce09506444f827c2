// How issued calls on memory of a device end: with their communicator, at a limit, by an abort.

#include <array>
#include <chrono>
#include <thread>

#include "device/issued_calls.hpp"

namespace anyccl::test {
namespace {

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

TEST(IssuedOnDevice, a_work_that_is_over_stays_as_it_is) {
  on_devices(1, [](RankOnDevice& rank) {
    const OnDevice x = rank.put(Floats(kMany, 1.0F));
    for (int i = 0; i < 20; ++i) {
      auto part = rank.comm.split(0, 0);
      ASSERT_OK(part.status());
      const anycclCall_t call = sum_of(rank, x.at(), x.at(), kMany);
      anycclWork_t work = nullptr;
      EXPECT_EQ(anycclIssue(&call, part->handle(), &work), anycclSuccess);
      std::jthread other([&] {
        // So that some aborts come while the result is copied; none of them does harm.
        std::this_thread::sleep_for(std::chrono::microseconds(300 * i));
        EXPECT_OK(part->abort());
      });
      int done = 0;
      anycclResult_t ended = anycclSuccess;
      while (done == 0) ended = anycclWorkTest(work, &done);
      other.join();
      // Nothing tells of a write that must not come; a late one comes by then.
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      EXPECT_EQ(anycclWorkTest(work, &done), ended);
      EXPECT_EQ(anycclWorkFree(work), anycclSuccess);
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
