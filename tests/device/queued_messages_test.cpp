// Messages in queues of devices: what arrives, in which order, and what ends or refuses them.

#include <array>
#include <barrier>
#include <chrono>
#include <numeric>
#include <thread>

#include "c/handle.hpp"
#include "device/in_queues.hpp"
#include "framework/device/device_queues.hpp"

namespace anyccl::test {
namespace {

anycclCall_t send_of(const RankOnDevice& rank, const void* x, std::size_t count, int to) {
  return call_of(anycclCollSend, x, nullptr, count, rank.stream.handle(), to);
}
anycclCall_t receive_of(const RankOnDevice& rank, void* x, std::size_t count, int from) {
  return call_of(anycclCollRecv, nullptr, x, count, rank.stream.handle(), from);
}

void run(const RankOnDevice& rank, const anycclCall_t& call) {
  EXPECT_EQ(anycclRun(&call, rank.comm.handle()), anycclSuccess) << rank.last_error();
}

int me_of(const RankOnDevice& rank) {
  return index(rank.comm.rank());
}

Floats numbers_from(float first, std::size_t count) {
  Floats x(count);
  std::iota(x.begin(), x.end(), first);
  return x;
}

/// Parts that have gone to a peer in queues.
std::uint32_t parts_sent(const RankOnDevice& rank, int to) {
  const Wires& wires = rank.comm.handle()->device.queues.load()->wires();
  return __atomic_load_n(wires.sent(static_cast<std::uint32_t>(to), uindex(rank.comm.rank())),
                         __ATOMIC_ACQUIRE);
}

void expect_failed(const RankOnDevice& rank, anycclResult_t why, const std::string& words) {
  rank.device.await(rank.queue);  // which goes on
  anycclResult_t result = anycclSuccess;
  EXPECT_EQ(anycclCommGetAsyncError(rank.comm.handle(), &result), anycclSuccess);
  EXPECT_EQ(result, why);
  EXPECT_NE(rank.last_error().find(words), std::string::npos) << rank.last_error();
}

TEST(QueuedMessages, of_all_sizes_go_round_in_a_group) {
  // One part; one and a bit; as many as there are slots; more.
  const std::vector<std::size_t> counts{1, 1023, 65536, 65537, 600000, 2000000};
  for (const int ranks : {2, 3})
    in_queues(ranks, [&](RankOnDevice& rank) {
      const int me = me_of(rank), next = (me + 1) % ranks, before = (me + ranks - 1) % ranks;
      std::uint32_t parts = 0;
      for (const std::size_t count : counts) {
        const OnDevice in = rank.put(numbers_from(static_cast<float>(me), count)),
                       out = rank.put(Floats(count));
        anycclGroupStart();
        run(rank, receive_of(rank, out.at(), count, before));
        run(rank, send_of(rank, in.at(), count, next));
        EXPECT_EQ(anycclGroupEnd(), anycclSuccess) << rank.last_error();
        rank.device.await(rank.queue);
        EXPECT_EQ(floats_on(out), numbers_from(static_cast<float>(before), count)) << count;
        EXPECT_GT(parts_sent(rank, next), parts);
        parts = parts_sent(rank, next);
      }
    });
}

/// The stream writes one that is sent, and then writes it again; it reads where one is received,
/// and then reads it again.
TEST(QueuedMessages, are_in_the_order_of_their_streams) {
  constexpr std::size_t kCount = 1000, kBytes = kCount * sizeof(float);
  std::barrier late(2);
  in_queues(2, [&](RankOnDevice& rank) {
    const OnDevice x = rank.put(Floats(kCount, 8)), sent = rank.put(numbers_from(1, kCount)),
                   other = rank.put(Floats(kCount, 9)), before = rank.put(Floats(kCount)),
                   after = rank.put(Floats(kCount));
    const bool sends = me_of(rank) == 0;
    const auto copy = [&](const OnDevice& to, const OnDevice& from) {
      EXPECT_OK(rank.device->copy(rank.queue, to.at(), from.at(), kBytes));
    };
    late.arrive_and_wait();
    HeldUp held(rank, rank.queue);
    sends ? copy(x, sent) : copy(before, x);
    run(rank, sends ? send_of(rank, x.at(), kCount, 1) : receive_of(rank, x.at(), kCount, 0));
    sends ? copy(x, other) : copy(after, x);
    // If a queue does not wait for its stream, it has the time here to go on.
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    held.go_on();
    rank.device.await(rank.queue);
    if (sends) return;
    EXPECT_EQ(floats_on(before), Floats(kCount, 8));
    EXPECT_EQ(floats_on(after), numbers_from(1, kCount));
  });
}

TEST(QueuedMessages, a_caller_of_one_waits_for_nothing) {
  std::barrier called(2);
  in_queues(2, [&](RankOnDevice& rank) {
    const OnDevice x = rank.put(Floats(2000000, 1));
    const bool sends = me_of(rank) == 0;
    HeldUp held(rank, rank.queue);
    run(rank, sends ? send_of(rank, x.at(), 2000000, 1) : receive_of(rank, x.at(), 2000000, 0));
    called.arrive_and_wait();  // neither has begun
  });
}

/// Many more than queues have room for, both ways.
TEST(QueuedMessages, of_a_group_do_not_wait_for_each_other) {
  constexpr std::size_t kMessages = 300;
  in_queues(2, [&](RankOnDevice& rank) {
    const int other = 1 - me_of(rank);
    const OnDevice in = rank.put(numbers_from(static_cast<float>(other), kMessages)),
                   out = rank.put(Floats(kMessages));
    const auto at = [](const OnDevice& x, std::size_t i) { return x.at() + i * sizeof(float); };
    anycclGroupStart();
    for (std::size_t i = 0; i < kMessages; ++i) run(rank, send_of(rank, at(in, i), 1, other));
    for (std::size_t i = 0; i < kMessages; ++i) run(rank, receive_of(rank, at(out, i), 1, other));
    EXPECT_EQ(anycclGroupEnd(), anycclSuccess) << rank.last_error();
    rank.device.await(rank.queue);
    EXPECT_EQ(floats_on(out), numbers_from(static_cast<float>(me_of(rank)), kMessages));
    EXPECT_EQ(parts_sent(rank, other), kMessages);
  });
}

/// All ranks are those of one thread.
TEST(QueuedMessages, of_several_ranks_are_in_one_group) {
  constexpr std::size_t kCount = 2000000;
  struct End {
    const RankOnDevice* rank;
    const OnDevice *in, *out;
  };
  std::array<End, 2> ends{};
  std::barrier there(2);
  in_queues(2, [&](RankOnDevice& rank) {
    const int me = me_of(rank);
    const OnDevice in = rank.put(Floats(kCount, static_cast<float>(me))),
                   out = rank.put(Floats(kCount));
    ends[static_cast<std::size_t>(me)] = {&rank, &in, &out};
    there.arrive_and_wait();
    if (me == 0) {
      anycclGroupStart();
      for (const auto& [end, x, y] : ends) {
        run(*end, receive_of(*end, y->at(), kCount, 1 - me_of(*end)));
        run(*end, send_of(*end, x->at(), kCount, 1 - me_of(*end)));
      }
      EXPECT_EQ(anycclGroupEnd(), anycclSuccess) << rank.last_error();
    }
    there.arrive_and_wait();
    rank.device.await(rank.queue);
    EXPECT_EQ(floats_on(out), Floats(kCount, static_cast<float>(1 - me)));
  });
}

TEST(QueuedMessages, are_issued_both_ways_and_waited_for) {
  constexpr std::size_t kCount = 3000000;
  in_queues(2, [](RankOnDevice& rank) {
    const int other = 1 - me_of(rank);
    const OnDevice in = rank.put(Floats(kCount, static_cast<float>(other))),
                   out = rank.put(Floats(kCount));
    anycclWork_t sent = issue(rank, send_of(rank, in.at(), kCount, other)),
                 received = issue(rank, receive_of(rank, out.at(), kCount, other));
    int device = ANYCCL_NO_DEVICE;
    EXPECT_EQ(anycclWorkGetDevice(received, &device), anycclSuccess);
    EXPECT_EQ(device, rank.device->number());
    EXPECT_EQ(anycclWorkWaitStream(received, rank.stream.handle()), anycclSuccess);
    rank.device.await(rank.queue);
    EXPECT_EQ(floats_on(out), Floats(kCount, static_cast<float>(me_of(rank))));
    expect_complete(rank, sent);
    expect_complete(rank, received);
  });
}

TEST(QueuedMessages, without_a_stream_block) {
  in_queues(2, [](RankOnDevice& rank) {
    const OnDevice x = rank.put({0});
    anycclComm_t comm = rank.comm.handle();
    const auto call = [&](bool sends) {
      return sends ? anycclSend(x.at(), 1, anycclFloat32, 1 - me_of(rank), comm, nullptr)
                   : anycclRecv(x.at(), 1, anycclFloat32, 1 - me_of(rank), comm, nullptr);
    };
    for (int i = 0; i < 20; ++i) {
      EXPECT_EQ(call(me_of(rank) == i % 2), anycclSuccess) << rank.last_error();
      if (me_of(rank) != i % 2) {
        EXPECT_EQ(floats_on(x), Floats{static_cast<float>(i / 2)});
      }
      const OnDevice next = rank.put({static_cast<float>((i + 1) / 2)});
      EXPECT_OK(rank.device->copy(rank.queue, x.at(), next.at(), sizeof(float)));
      rank.device.await(rank.queue);
    }
  });
}

TEST(QueuedMessages, that_are_synchronous_end_when_the_other_end_has_called) {
  std::barrier looked(2);
  in_queues(2, [&](RankOnDevice& rank) {
    const OnDevice x = rank.put({1});
    if (me_of(rank) == 1) {
      looked.arrive_and_wait();
      run(rank, receive_of(rank, x.at(), 1, 0));
      return;
    }
    anycclCall_t call = send_of(rank, x.at(), 1, 1);
    call.synchronous = 1;
    anycclWork_t work = issue(rank, call);
    while (parts_sent(rank, 1) == 0) std::this_thread::yield();
    EXPECT_FALSE(is_done(work));
    looked.arrive_and_wait();
    expect_complete(rank, work);
  });
}

TEST(QueuedMessages, with_tags_and_to_itself_go_by_copies) {
  in_queues(2, [](RankOnDevice& rank) {
    const int other = 1 - me_of(rank), me = me_of(rank);
    const OnDevice in = rank.put({5}), out = rank.put({0}), own = rank.put({0});
    anycclCall_t send = send_of(rank, in.at(), 1, other),
                 get = receive_of(rank, out.at(), 1, other);
    send.tag = get.tag = 3;
    anycclGroupStart();
    run(rank, send);
    run(rank, get);
    run(rank, send_of(rank, in.at(), 1, me));
    run(rank, receive_of(rank, own.at(), 1, me));
    EXPECT_EQ(anycclGroupEnd(), anycclSuccess) << rank.last_error();
    EXPECT_EQ(floats_on(out), Floats{5});
    EXPECT_EQ(floats_on(own), Floats{5});
    EXPECT_EQ(parts_sent(rank, other), 0U);
  });
}

TEST(QueuedMessages, are_found_by_a_probe) {
  in_queues(2, [](RankOnDevice& rank) {
    const OnDevice x = rank.put(Floats(1000, 3));
    if (me_of(rank) == 0) return run(rank, send_of(rank, x.at(), 1000, 1));
    anycclMessage_t found{};
    EXPECT_EQ(anycclProbe(0, 0, rank.comm.handle(), &found), anycclSuccess) << rank.last_error();
    EXPECT_EQ(found.count, 1000U);
    EXPECT_EQ(found.datatype, anycclFloat32);
    run(rank, receive_of(rank, x.at(), 1000, 0));
    rank.device.await(rank.queue);
  });
}

TEST(QueuedMessages, that_do_not_fit_name_both_ends) {
  for (const bool is_early : {true, false}) {
    std::barrier called(2);
    in_queues(2, [&](RankOnDevice& rank) {
      const OnDevice x = rank.put(Floats(4, static_cast<float>(me_of(rank))));
      const bool sends = me_of(rank) == 0;
      if (sends != is_early) called.arrive_and_wait();
      run(rank, sends ? send_of(rank, x.at(), 4, 1) : receive_of(rank, x.at(), 3, 0));
      if (sends == is_early) called.arrive_and_wait();
      if (sends) return;
      expect_failed(rank, anycclInvalidUsage,
                    "rank 0 sends 16 bytes to rank 1, which expects 12 bytes from it");
    });
  }
}

TEST(QueuedMessages, whose_other_end_is_on_the_host_name_both_ends) {
  for (const int on_host : {0, 1})
    in_queues(2, [&](RankOnDevice& rank) {
      const OnDevice on_device = rank.put({1});
      Floats memory{2};
      void* const x = me_of(rank) == on_host ? static_cast<void*>(memory.data()) : on_device.at();
      const auto call = me_of(rank) == 0 ? send_of(rank, x, 1, 1) : receive_of(rank, x, 1, 0);
      static_cast<void>(anycclRun(&call, rank.comm.handle()));
      if (me_of(rank) == 1)
        expect_failed(rank, anycclInvalidUsage,
                      on_host == 0 ? "rank 0 sends 1 f32 by copies, or on the host, and rank 1 "
                                     "receives 1 f32 in queues of its device"
                                   : "rank 0 sends 1 f32 in queues of its device, and rank 1 "
                                     "receives 1 f32 by copies, or on the host");
    });
}

TEST(QueuedMessages, a_peer_that_does_not_come_is_named_at_the_time_limit) {
  // A receive; a send that fits the slots, which ends; and one that does not.
  std::barrier over(2);
  for (const bool sends : {true, false})
    in_queues(2, [&](RankOnDevice& rank) {
      constexpr std::size_t kCount = 2000000;
      const OnDevice x = rank.put(Floats(kCount));
      if (me_of(rank) == 0) {
        if (sends) run(rank, send_of(rank, x.at(), 1, 1));
        if (sends) rank.device.await(rank.queue);
        anycclCall_t call =
            sends ? send_of(rank, x.at(), kCount, 1) : receive_of(rank, x.at(), 1, 1);
        call.timeout_ms = 50;
        run(rank, call);
        expect_failed(rank, anycclTimeout, "rank 1");
      }
      over.arrive_and_wait();
    });
}

/// Its queue has no room for all of its parts, and no part is put there before a slot is free.
TEST(QueuedMessages, a_peer_that_does_not_come_is_named_before_all_parts_are_in_the_queue) {
  std::barrier over(2);
  in_queues(2, [&](RankOnDevice& rank) {
    constexpr std::size_t kCount = 2000000;
    const OnDevice x = rank.put(Floats(kCount));
    if (me_of(rank) == 0) {
      anycclCall_t call = send_of(rank, x.at(), kCount, 1);
      call.timeout_ms = 50;
      anycclWork_t work = issue(rank, call);
      EXPECT_EQ(anycclWorkWait(work), anycclTimeout);
      EXPECT_EQ(anycclWorkFree(work), anycclSuccess);
      expect_failed(rank, anycclTimeout, "rank 1");
    }
    over.arrive_and_wait();
  });
}

/// In the call: its queue has no room for so many parts.
TEST(QueuedMessages, a_peer_that_does_not_come_is_named_while_a_call_waits_for_room) {
  std::barrier over(2);
  in_queues(2, [&](RankOnDevice& rank) {
    constexpr std::size_t kBytes = std::size_t{176} << 20;
    if (me_of(rank) == 0) {
      void* const x = *rank.device->allocate(kBytes);
      anycclCall_t call = send_of(rank, x, kBytes / sizeof(float), 1);
      call.timeout_ms = 50;
      static_cast<void>(anycclRun(&call, rank.comm.handle()));
      expect_failed(rank, anycclTimeout, "rank 1");
      EXPECT_OK(rank.device->release(x));
    }
    over.arrive_and_wait();
  });
}

TEST(QueuedMessages, an_abort_lets_the_stream_go_on) {
  std::barrier aborted(2);
  in_queues(2, [&](RankOnDevice& rank) {
    const OnDevice x = rank.put(Floats(2000000));
    if (me_of(rank) == 0) {
      run(rank, receive_of(rank, x.at(), 1, 1));
      EXPECT_OK(rank.comm.abort());
      rank.device.await(rank.queue);
    }
    aborted.arrive_and_wait();
  });
}

TEST(QueuedMessages, a_sender_may_leave_behind_its_last_one) {
  std::barrier left(2);
  in_queues(2, [&](RankOnDevice& rank) {
    const OnDevice x = rank.put(numbers_from(static_cast<float>(1 - me_of(rank)), 1000));
    auto part = rank.comm.split(0, 0);
    ASSERT_OK(part.status());
    use_queues(*part);
    const bool sends = me_of(rank) == 0;
    if (!sends) left.arrive_and_wait();
    const auto call = sends ? send_of(rank, x.at(), 1000, 1) : receive_of(rank, x.at(), 1000, 0);
    EXPECT_EQ(anycclRun(&call, part->handle()), anycclSuccess) << anycclGetLastError(nullptr);
    if (!sends) rank.device.await(rank.queue);
    EXPECT_OK(part->destroy());
    if (sends) left.arrive_and_wait();
    EXPECT_EQ(floats_on(x), numbers_from(1, 1000));
  });
}

}  // namespace
}  // namespace anyccl::test
