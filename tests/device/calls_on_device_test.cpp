// Messages, groups and the order of streams, with memory of a device.

#include <dlfcn.h>

#include <atomic>
#include <filesystem>
#include <iterator>
#include <numeric>

#include "device/issued_calls.hpp"
#include "platform/device/cuda/driver_api.hpp"

namespace anyccl::test {
namespace {

TEST(CallsOnDevice, a_message_goes_from_device_to_device) {
  on_devices(2, [](RankOnDevice& rank) {
    const bool sends = rank.comm.rank() == Rank{0};
    const OnDevice x = rank.put(sends ? Floats{1, 2, 3} : Floats{7, 7, 7, 7});
    const anycclComm_t comm = rank.comm.handle();
    EXPECT_EQ(sends ? anycclSend(x.at(), 3, anycclFloat32, 1, comm, rank.stream.handle())
                    : anycclRecv(x.at(), 3, anycclFloat32, 0, comm, rank.stream.handle()),
              anycclSuccess)
        << rank.last_error();
    EXPECT_EQ(floats_on(x), sends ? (Floats{1, 2, 3}) : (Floats{1, 2, 3, 7}));
  });
}

TEST(CallsOnDevice, a_group_exchanges_messages_and_sums_of_device_and_host) {
  on_devices(3, [](RankOnDevice& rank) {
    const int me = index(rank.comm.rank()), n = rank.comm.size();
    const float mine = static_cast<float>(me + 1);
    const OnDevice sent = rank.put({mine, mine}), received = rank.put({0, 0});
    const OnDevice sum = rank.put({mine});
    Floats on_host{mine * 10}, host_sum{0};
    anycclGroupStart();
    EXPECT_EQ(anycclSend(sent.at(), 2, anycclFloat32, (me + 1) % n, rank.comm.handle(),
                         rank.stream.handle()),
              anycclSuccess);
    EXPECT_EQ(anycclRecv(received.at(), 2, anycclFloat32, (me + n - 1) % n, rank.comm.handle(),
                         rank.stream.handle()),
              anycclSuccess);
    EXPECT_EQ(rank.all_reduce(sum.at(), sum.at(), 1), anycclSuccess);
    EXPECT_EQ(anycclAllReduce(on_host.data(), host_sum.data(), 1, anycclFloat32, anycclSum,
                              rank.comm.handle(), nullptr),
              anycclSuccess);
    EXPECT_EQ(anycclGroupEnd(), anycclSuccess) << rank.last_error();
    const float before = static_cast<float>((me + n - 1) % n + 1);
    EXPECT_EQ(floats_on(received), (Floats{before, before}));
    EXPECT_EQ(floats_on(sum), Floats{6});
    EXPECT_EQ(host_sum, Floats{60});
  });
}

TEST(CallsOnDevice, blocks_of_all_to_all_w_lie_on_the_device) {
  on_devices(2, [](RankOnDevice& rank) {
    const float me = static_cast<float>(index(rank.comm.rank()));
    const OnDevice in = rank.put({me * 10, me * 10 + 1}), out = rank.put({9, 9});
    const std::size_t counts[] = {1, 1}, displs[] = {0, sizeof(float)};
    const anycclDataType_t types[] = {anycclFloat32, anycclFloat32};
    EXPECT_EQ(anycclAllToAllw(in.at(), counts, displs, types, out.at(), counts, displs, types,
                              rank.comm.handle(), rank.stream.handle()),
              anycclSuccess)
        << rank.last_error();
    EXPECT_EQ(floats_on(out), (Floats{me, 10 + me}));
  });
}

TEST(CallsOnDevice, ranks_with_and_without_a_device_meet_in_one_call) {
  on_devices(3, [](RankOnDevice& rank) {
    const anycclComm_t comm = rank.comm.handle();
    const bool on_host = rank.comm.rank() == Rank{0};
    if (on_host) {
      EXPECT_EQ(anycclCommSetDevice(comm, ANYCCL_NO_DEVICE), anycclSuccess);
    }
    Floats there{1, 2};
    const OnDevice memory = rank.put(there);
    void* const x = on_host ? static_cast<void*>(there.data()) : memory.at();
    const auto values = [&] { return on_host ? there : floats_on(memory); };
    EXPECT_EQ(anycclAllReduce(x, x, 2, anycclFloat32, anycclSum, comm, nullptr), anycclSuccess)
        << rank.last_error();
    EXPECT_EQ(values(), (Floats{3, 6}));
    EXPECT_EQ(anycclScan(x, x, 2, anycclFloat32, anycclSum, comm, nullptr), anycclSuccess);
    EXPECT_EQ(anycclBroadcast(x, x, 2, anycclFloat32, 2, comm, nullptr), anycclSuccess);
    EXPECT_EQ(values(), (Floats{9, 18}));
    if (on_host) {
      EXPECT_EQ(anycclRecv(x, 1, anycclFloat32, 1, comm, nullptr), anycclSuccess);
    } else if (rank.comm.rank() == Rank{1}) {
      EXPECT_EQ(anycclSend(memory.at() + sizeof(float), 1, anycclFloat32, 0, comm, nullptr),
                anycclSuccess);
    }
    EXPECT_EQ(values(), on_host ? (Floats{18, 18}) : (Floats{9, 18}));
  });
}

TEST(CallsOnDevice, calls_that_differ_are_named_on_all_ranks) {
  on_devices(2, [](RankOnDevice& rank) {
    const OnDevice x = rank.put({1, 1});
    const anycclComm_t comm = rank.comm.handle();
    EXPECT_REFUSED(
        anycclInvalidUsage, "differs between ranks",
        rank.comm.rank() == Rank{0}
            ? anycclAllReduce(x.at(), x.at(), 2, anycclFloat32, anycclSum, comm, nullptr)
            : anycclAllReduce(x.at(), x.at(), 1, anycclFloat32, anycclSum, comm, nullptr));
    EXPECT_EQ(floats_on(x), (Floats{1, 1}));
  });
}

/// Its queue changes the input when `word` is 1, which another thread writes once the call waits.
void sum_what_comes_late(RankOnDevice& rank, DeviceQueue queue, anycclStream_t stream) {
  const OnDevice x = rank.put({1, 1}), late = rank.put({5, 5}), sum = rank.put({0, 0});
  const Pinned word(*rank.device, 4096);
  EXPECT_OK(rank.device->wait_word(queue, word.word(), 1));
  EXPECT_OK(rank.device->copy(queue, x.at(), late.at(), 2 * sizeof(float)));
  std::atomic<bool> returned = false;
  std::jthread other([&] {
    // Nothing shows from outside that the call waits. A call that does not wait would mostly be
    // over by then, with the early sum; one that waits passes, however slow the machine.
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_FALSE(returned.load());
    __atomic_store_n(word.word(), 1U, __ATOMIC_RELEASE);
  });
  EXPECT_EQ(
      anycclAllReduce(x.at(), sum.at(), 2, anycclFloat32, anycclSum, rank.comm.handle(), stream),
      anycclSuccess);
  returned = true;
  other.join();
  EXPECT_EQ(floats_on(sum), (Floats{10, 10}));
}

TEST(CallsOnDevice, earlier_work_of_the_stream_comes_first) {
  on_devices(
      2, [](RankOnDevice& rank) { sum_what_comes_late(rank, rank.queue, rank.stream.handle()); });
}

TEST(CallsOnDevice, without_a_stream_earlier_work_of_the_default_stream_comes_first) {
  on_devices(2, [](RankOnDevice& rank) { sum_what_comes_late(rank, nullptr, nullptr); });
}

TEST(CallsOnDevice, an_abort_ends_a_call_that_waits_for_its_stream) {
  on_devices(2, [](RankOnDevice& rank) {
    const OnDevice x = rank.put({1});
    const Pinned word(*rank.device, 4096);
    EXPECT_OK(rank.device->wait_word(rank.queue, word.word(), 1));
    std::jthread other([&] {
      // So that the abort mostly meets a call that waits; one that begins later is Aborted, too.
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      EXPECT_OK(rank.comm.abort());
    });
    const anycclComm_t handle = rank.comm.handle();
    EXPECT_EQ(
        anycclAllReduce(x.at(), x.at(), 1, anycclFloat32, anycclSum, handle, rank.stream.handle()),
        anycclAborted);
    other.join();
    __atomic_store_n(word.word(), 1U, __ATOMIC_RELEASE);
    rank.device.await(rank.queue);
  });
}

TEST(CallsOnDevice, a_time_limit_ends_a_call_that_waits_for_its_stream) {
  on_devices(1, [](RankOnDevice& rank) {
    const OnDevice x = rank.put({1});
    const Pinned word(*rank.device, 4096);
    EXPECT_OK(rank.device->wait_word(rank.queue, word.word(), 1));
    anycclCall_t call = sum_of(rank, x.at(), x.at(), 1);
    call.timeout_ms = 20;
    EXPECT_REFUSED(anycclTimeout, "has not come to the call within 20 ms",
                   anycclRun(&call, rank.comm.handle()));
    __atomic_store_n(word.word(), 1U, __ATOMIC_RELEASE);
    rank.device.await(rank.queue);
  });
}

TEST(CallsOnDevice, work_of_other_streams_is_not_waited_for) {
  on_devices(2, [](RankOnDevice& rank) {
    const DeviceQueue other = *rank.device->make_queue(false);
    const Pinned word(*rank.device, 4096);
    EXPECT_OK(rank.device->wait_word(other, word.word(), 1));
    for (const std::size_t count : {1UL, 9UL << 20, 1UL}) {
      void* const x = *rank.device->allocate(count * sizeof(float));
      EXPECT_EQ(rank.all_reduce(x, x, count), anycclSuccess);
    }
    auto part = rank.comm.split(0, 0);
    ASSERT_OK(part.status());
    EXPECT_OK(part->destroy());
    __atomic_store_n(word.word(), 1U, __ATOMIC_RELEASE);
    rank.device.await(other);
    EXPECT_OK(rank.device->drop_queue(other));
  });
}

TEST(CallsOnDevice, a_communicator_that_has_failed_keeps_no_other_from_its_calls_in_a_group) {
  on_devices(2, [](RankOnDevice& rank) {
    auto part = rank.comm.split(0, 0);
    ASSERT_OK(part.status());
    EXPECT_EQ(anycclCommRevoke(part->handle(), ANYCCL_REVOKE_DEFAULT), anycclSuccess);
    const OnDevice x = rank.put({1}), y = rank.put({2});
    anycclGroupStart();
    EXPECT_EQ(anycclAllReduce(y.at(), y.at(), 1, anycclFloat32, anycclSum, part->handle(),
                              rank.stream.handle()),
              anycclSuccess);
    EXPECT_EQ(rank.all_reduce(x.at(), x.at(), 1), anycclSuccess);
    EXPECT_EQ(anycclGroupEnd(), anycclAborted);
    EXPECT_EQ(floats_on(x), Floats{2});
  });
}

TEST(CallsOnDevice, opposite_orders_in_two_communicators_end_at_the_time_limit) {
  on_devices(2, [](RankOnDevice& rank) {
    auto part = rank.comm.split(0, 0);
    ASSERT_OK(part.status());
    const OnDevice x = rank.put({1});
    anycclCall_t call = sum_of(rank, x.at(), x.at(), 1);
    call.timeout_ms = 100;
    const bool first = rank.comm.rank() == Rank{0};
    const anycclComm_t comm = first ? rank.comm.handle() : part->handle();
    EXPECT_NE(anycclRun(&call, comm), anycclSuccess);
    const std::string text = anycclGetLastError(comm);
    EXPECT_NE(text.find("all_reduce"), std::string::npos) << text;
    EXPECT_NE(text.find(first ? "rank 1" : "rank 0"), std::string::npos) << text;
  });
}

int threads_of_this_process() {
  const std::filesystem::directory_iterator all("/proc/self/task");
  return static_cast<int>(std::distance(begin(all), end(all)));
}

/// The simulated driver has a thread for each queue.
TEST(CallsOnDevice, communicators_share_the_queues_that_copy) {
  const CurrentDevice current(0);
  const OnDevice x(current, bytes_of_floats({1}));
  const int before = threads_of_this_process();
  for (int i = 0; i < 20; ++i) {
    auto comms = Communicator::init_all(1);
    ASSERT_OK(comms.status());
    EXPECT_EQ(anycclAllReduce(x.at(), x.at(), 1, anycclFloat32, anycclSum, comms->at(0).handle(),
                              nullptr),
              anycclSuccess);
    EXPECT_OK(comms->at(0).destroy());
  }
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (threads_of_this_process() > before + 5 && std::chrono::steady_clock::now() < deadline)
    std::this_thread::yield();
  EXPECT_LE(threads_of_this_process(), before + 5);
}

TEST(CallsOnDevice, the_current_device_of_the_caller_stays) {
  on_devices(2, [](RankOnDevice& rank) {
    const auto current = [] {
      auto* const get = reinterpret_cast<cuda::Error (*)(cuda::Context*)>(
          dlsym(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), "cuCtxGetCurrent"));
      cuda::Context context = nullptr;
      EXPECT_EQ(get(&context), 0);
      return context;
    };
    const OnDevice x = rank.put({1});
    const CurrentDevice another(1 - rank.device->number());
    const cuda::Context before = current();
    EXPECT_EQ(rank.all_reduce(x.at(), x.at(), 1), anycclSuccess);
    EXPECT_EQ(current(), before);
  });
}

TEST(CallsOnDevice, a_split_has_the_device_and_may_give_it_up) {
  on_devices(2, [](RankOnDevice& rank) {
    auto part = rank.comm.split(0, 0);
    ASSERT_OK(part.status());
    const OnDevice x = rank.put({2});
    EXPECT_EQ(anycclAllReduce(x.at(), x.at(), 1, anycclFloat32, anycclSum, part->handle(),
                              rank.stream.handle()),
              anycclSuccess);
    EXPECT_EQ(floats_on(x), Floats{4});
    EXPECT_EQ(anycclCommSetDevice(part->handle(), ANYCCL_NO_DEVICE), anycclSuccess);
    EXPECT_EQ(anycclAllReduce(x.at(), x.at(), 1, anycclFloat32, anycclSum, part->handle(),
                              rank.stream.handle()),
              anycclInvalidUsage);
    EXPECT_NE(std::string(anycclGetLastError(part->handle())).find("has no device"),
              std::string::npos);
    EXPECT_EQ(anycclCommSetDevice(part->handle(), 99), anycclUnsupported);
  });
}

TEST(CallsOnDevice, blocks_of_memory_are_used_again_whatever_the_sizes) {
  on_devices(2, [](RankOnDevice& rank) {
    for (const std::size_t count : {1UL, 100000UL, 5UL, 300000UL, 1UL}) {
      Floats x(count);
      std::iota(x.begin(), x.end(), 0.0F);
      const OnDevice there = rank.put(x);
      EXPECT_EQ(rank.all_reduce(there.at(), there.at(), count), anycclSuccess);
      for (float& value : x) value *= 2;
      EXPECT_EQ(floats_on(there), x);
    }
  });
}

}  // namespace
}  // namespace anyccl::test
