// Collectives in queues of devices, in modelled time of the simulated driver: a bound, so that a
// change that makes them slower is seen. It says nothing about the times of a device.

#include <fmt/core.h>

#include <barrier>

#include "device/in_queues.hpp"

namespace anyccl::test {
namespace {

/// The modelled nanoseconds of a call of two ranks in their streams. Both begin at one time, on
/// idle engines.
double time_of(const RankOnDevice& rank, const anycclCall_t& call) {
  static double times[2];
  static std::barrier meet(2);
  const ModelledTime time;
  times[index(rank.comm.rank())] = time.now();
  meet.arrive_and_wait();
  time.catch_up(std::max(times[0], times[1]) + 1e6);
  meet.arrive_and_wait();
  const double begin = time.now();
  EXPECT_EQ(anycclRun(&call, rank.comm.handle()), anycclSuccess) << rank.last_error();
  EXPECT_EQ(time.synchronize(reinterpret_cast<cuda::Stream>(rank.queue)), 0);
  return time.now() - begin;
}

double time_of(const RankOnDevice& rank, const void* in, void* out, std::size_t count) {
  return time_of(rank, sum_of(rank, in, out, count));
}

/// The share of the link's time.
double share_of_link(const RankOnDevice& rank, const void* in, void* out, std::size_t mib) {
  const double took = time_of(rank, in, out, mib << 18);
  const double link = 26;  // bytes in a nanosecond, as docs/devices.md has it
  const double share = static_cast<double>(mib << 20) / link / took;
  if (rank.comm.rank() == Rank{0})
    fmt::print("{} MiB: {:.1f} us, {:.0f} % of the link\n", mib, took / 1e3, 100 * share);
  return share;
}

/// What the synchronization of the stream takes is not the call's.
double microseconds_of_small(const RankOnDevice& rank, void* x, std::size_t bytes) {
  const double synchronization = 4000;  // as docs/devices.md has it
  const anycclCall_t call = sum_of(rank, x, x, bytes / sizeof(float));
  expect_complete(rank, issue(rank, call));  // no call is under way, and the kernel is there
  const double took = (time_of(rank, x, x, bytes / sizeof(float)) - synchronization) / 1e3;
  if (rank.comm.rank() == Rank{0}) fmt::print("{} bytes: {:.1f} us\n", bytes, took);
  return took;
}

TEST(ModelledTimes, of_all_reduce_are_near_those_of_the_link) {
  on_devices(1, [](RankOnDevice&) {});                   // opens the driver
  ModelledTime::find<void (*)()>("anyccl_sim_reset")();  // words of other tests had these addresses
  in_queues(2, [&](RankOnDevice& rank) {
    constexpr std::size_t kMost = 64 << 20;
    void *const in = *rank.device->allocate(kMost), *const out = *rank.device->allocate(kMost);
    EXPECT_GE(share_of_link(rank, in, out, 4), 0.62);
    EXPECT_GE(share_of_link(rank, in, out, 16), 0.78);
    EXPECT_GE(share_of_link(rank, in, out, 64), 0.83);
    EXPECT_LE(microseconds_of_small(rank, out, 8), 11);
    EXPECT_LE(microseconds_of_small(rank, out, 8192), 12);
    EXPECT_LE(microseconds_of_small(rank, out, 8196), 35);
    EXPECT_OK(rank.device->release(in));
    EXPECT_OK(rank.device->release(out));
  });
}

/// One way; what the synchronization of the stream takes is not the call's.
double microseconds_of_message(const RankOnDevice& rank, void* x, std::size_t bytes) {
  const bool sends = index(rank.comm.rank()) == 0;
  const anycclCall_t call =
      call_of(sends ? anycclCollSend : anycclCollRecv, sends ? x : nullptr, sends ? nullptr : x,
              bytes / sizeof(float), rank.stream.handle(), sends ? 1 : 0);
  const double took = (time_of(rank, call) - 4000) / 1e3;
  if (!sends) fmt::print("a message of {} bytes: {:.1f} us\n", bytes, took);
  return sends ? 0 : took;
}

TEST(ModelledTimes, of_messages_are_near_those_of_the_link) {
  on_devices(1, [](RankOnDevice&) {});
  ModelledTime::find<void (*)()>("anyccl_sim_reset")();
  in_queues(2, [&](RankOnDevice& rank) {
    constexpr std::size_t kMost = 64 << 20;
    void* const x = *rank.device->allocate(kMost);
    for (const auto& [bytes, most] :
         {std::pair{std::size_t{8}, 27.0}, {1 << 20, 90.0}, {16 << 20, 830.0}, {kMost, 3200.0}})
      EXPECT_LE(microseconds_of_message(rank, x, bytes), most);
    EXPECT_OK(rank.device->release(x));
  });
}

/// Data of ranks with one device does not cross the link.
TEST(ModelledTimes, of_ranks_with_one_device_are_below_those_of_the_link) {
  const CurrentDevice device(0);
  ModelledTime::find<void (*)()>("anyccl_sim_reset")();
  run_ranks(2, [&](Communicator& comm) {
    ASSERT_EQ(anycclCommSetDevice(comm.handle(), 0), anycclSuccess);
    use_queues(comm);
    constexpr std::size_t kMost = 16 << 20;
    RankOnDevice rank(comm);
    void *const in = *rank.device->allocate(kMost), *const out = *rank.device->allocate(kMost);
    EXPECT_GE(share_of_link(rank, in, out, 4), 1.3);
    EXPECT_GE(share_of_link(rank, in, out, 16), 1.8);
    EXPECT_OK(wait(comm.barrier()));
    EXPECT_OK(rank.device->release(in));
    EXPECT_OK(rank.device->release(out));
  });
}

}  // namespace
}  // namespace anyccl::test
