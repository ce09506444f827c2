// Small calls in queues of devices, each done by one kernel: their results, their order, and which
// calls these are.

#include "framework/device/exchanges.hpp"

#include <barrier>

#include "c/handle.hpp"
#include "device/device_trial.hpp"
#include "device/host_reductions.hpp"
#include "device/in_queues.hpp"
#include "framework/device/device_queues.hpp"
#include "support/effort.hpp"

namespace anyccl::test {
namespace {

const Wires& wires_of(const Communicator& comm) {
  return comm.handle()->device.queues.load()->wires();
}

/// How many exchanges this rank has done, when its stream is through with them.
std::uint32_t exchanges_of(const Communicator& comm) {
  std::uint32_t most = 0;
  for (const std::uint32_t bank : {0U, 1U}) {
    const std::uint64_t* const first = wires_of(comm).lines(uindex(comm.rank()), bank);
    most =
        std::max(most, static_cast<std::uint32_t>(__atomic_load_n(first, __ATOMIC_RELAXED) >> 32));
  }
  return most;
}

/// The outputs of all ranks are the host's sums, by the aligned tree, of what all ranks have.
void expect_bits_of_host(RankOnDevice& rank, Reduction what, std::size_t count, bool scatters) {
  const auto ranks = static_cast<std::size_t>(rank.comm.size());
  const auto me = static_cast<std::size_t>(index(rank.comm.rank()));
  const std::size_t block = count * bytes_of(what.dtype), all = scatters ? ranks * count : count;
  const Vectors x = random_vectors(what.dtype, ranks, all, static_cast<unsigned>(count) + 3);
  Vectors mine = x;
  for (auto& vector : mine)
    if (scatters)
      vector = {vector.begin() + static_cast<std::ptrdiff_t>(me * block),
                vector.begin() + static_cast<std::ptrdiff_t>((me + 1) * block)};
  Bytes want;
  if (what.op == ReduceOp::avg) {
    Portions average = average_on_host(what.dtype, ranks);
    average.divisor = static_cast<std::uint32_t>(ranks);
    want = on_host(average, mine, count);
  } else {
    want = on_host(*reduce_kernel(what.dtype, what.op), mine, count);
  }
  const OnDevice in(rank.device, x[me]), out(rank.device, Bytes(block));
  anycclCall_t call{};
  call.size = sizeof call;
  call.collective = scatters ? anycclCollReduceScatter : anycclCollAllReduce;
  call.sendbuff = in.at();
  call.recvbuff = out.at();
  call.count = count;
  call.datatype = static_cast<anycclDataType_t>(what.dtype);
  call.op = static_cast<anycclRedOp_t>(what.op);
  call.stream = rank.stream.handle();
  ASSERT_EQ(anycclRun(&call, rank.comm.handle()), anycclSuccess) << rank.last_error();
  rank.device.await(rank.queue);
  EXPECT_EQ(out.bytes(), want) << name_of(what.op) << " of " << count << ' ' << name_of(what.dtype);
}

bool has_kernel(Reduction what) {
  return what.op == ReduceOp::avg ? divide_kernel(what.dtype).ok()
                                  : reduce_kernel(what.dtype, what.op).ok();
}

TEST(Exchanges, have_the_bits_of_the_host_for_each_type_and_operator) {
  for (const int ranks : effort<std::vector<int>>({2, 3}, {2, 3, 5}, {2, 3, 4, 5, 6, 7, 8}))
    in_queues(ranks, [&](RankOnDevice& rank) {
      std::uint32_t calls = 0;
      for (const DType type : all_types())
        for (std::size_t op = 0; op < kReduceOps; ++op) {
          const Reduction what{type, static_cast<ReduceOp>(op)};
          if (!has_kernel(what) || testing::Test::HasFailure()) continue;
          const bool scatters = (op + static_cast<std::size_t>(type)) % 2 == 0;
          expect_bits_of_host(rank, what, 61, scatters);
          EXPECT_EQ(exchanges_of(rank.comm), ++calls);
        }
    });
}

/// With odd numbers of bytes, blocks begin within a line.
TEST(Exchanges, of_any_size_up_to_the_largest_have_the_bytes_of_the_host) {
  for (const int ranks : effort<std::vector<int>>({2, 3}, {2, 3}, {2, 3, 4, 8}))
    in_queues(ranks, [&](RankOnDevice& rank) {
      const OneRank one{rank.comm, rank.device, rank.stream.handle(), rank.queue};
      const std::size_t largest = DeviceExchange::kMostBytes / static_cast<std::size_t>(ranks);
      for (const Collective what : {Collective::all_reduce, Collective::all_gather,
                                    Collective::reduce_scatter, Collective::all_to_all})
        for (const std::size_t count :
             {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{1021}, largest})
          for (const bool in_place : {false, true}) {
            SCOPED_TRACE(fmt::format("{} of {}, in place {}", name(what), count, in_place));
            if (!testing::Test::HasFailure())
              compare_with_host(one, what, DType::u8, count, in_place, 0,
                                {{true, true}, {true, true, Form::issued}});
          }
      EXPECT_EQ(exchanges_of(rank.comm), 80U);
    });
}

TEST(Exchanges, are_not_larger_and_not_where_an_algorithm_is_named) {
  in_queues(2, [](RankOnDevice& rank) {
    const OnDevice x = rank.put(Floats(4096, 1));
    const std::size_t most = DeviceExchange::kMostBytes / sizeof(float);
    const auto after_a_call = [&](std::size_t count) {
      EXPECT_EQ(rank.all_reduce(x.at(), x.at(), count), anycclSuccess) << rank.last_error();
      rank.device.await(rank.queue);
      return exchanges_of(rank.comm);
    };
    EXPECT_EQ(after_a_call(most), 1U);
    EXPECT_EQ(after_a_call(most + 1), 1U);
    EXPECT_EQ(after_a_call(1), 2U);
    CommunicatorConfig config;
    config.fields.algo = "all_reduce:one_shot";
    config.fields.deviceQueues = 1;
    auto named = rank.comm.split(0, 0, config);
    ASSERT_OK(named.status());
    EXPECT_EQ(anycclAllReduce(x.at(), x.at(), 1, anycclFloat32, anycclSum, named->handle(),
                              rank.stream.handle()),
              anycclSuccess);
    rank.device.await(rank.queue);
    EXPECT_EQ(exchanges_of(*named), 0U);
  });
}

/// One kernel of a device may not run while another one waits.
TEST(Exchanges, are_not_between_ranks_that_share_a_device) {
  const CurrentDevice device(0);
  run_ranks(2, [](Communicator& comm) {
    ASSERT_EQ(anycclCommSetDevice(comm.handle(), 0), anycclSuccess);
    use_queues(comm);
    RankOnDevice rank(comm);
    const OnDevice x = rank.put({1});
    EXPECT_OK(wait(comm.barrier()));
    EXPECT_EQ(rank.all_reduce(x.at(), x.at(), 1), anycclSuccess) << rank.last_error();
    rank.device.await(rank.queue);
    EXPECT_EQ(exchanges_of(comm), 0U);
    EXPECT_OK(wait(comm.barrier()));
  });
}

/// More than may be under way, none of which the host waits for.
TEST(Exchanges, follow_each_other_in_one_stream) {
  in_queues(3, [](RankOnDevice& rank) {
    const float me = static_cast<float>(index(rank.comm.rank()));
    const OnDevice x = rank.put({me, 1}), y = rank.put({0, 0});
    for (int i = 0; i < effort(200, 300, 5000); ++i) {
      EXPECT_EQ(anycclAllReduce(x.at(), y.at(), 2, anycclFloat32, anycclMax, rank.comm.handle(),
                                rank.stream.handle()),
                anycclSuccess);
      EXPECT_EQ(anycclAllReduce(y.at(), x.at(), 2, anycclFloat32, anycclAvg, rank.comm.handle(),
                                rank.stream.handle()),
                anycclSuccess);
    }
    rank.device.await(rank.queue);
    EXPECT_EQ(floats_on(x), (Floats{2, 1}));
  });
}

/// Also where the call before is larger, or the one after it, and one stream does not go on.
TEST(Exchanges, keep_the_order_of_the_calls_of_their_communicator) {
  in_queues(2, [](RankOnDevice& rank) {
    constexpr std::size_t kLarge = 4096;
    const OnDevice x = rank.put(Floats(kLarge, 1)), y = rank.put(Floats(kLarge, 1));
    const DeviceQueue queue = *rank.device->make_queue(false);
    const Stream other = *Stream::wrap(rank.device->number(), queue);
    const DeviceMoment end = *rank.device->make_moment();
    const std::size_t counts[][2] = {{1, 1}, {kLarge, 1}, {1, kLarge}};
    for (const auto& [first, second] : counts) {
      HeldUp held(rank, rank.queue);
      EXPECT_EQ(rank.all_reduce(x.at(), x.at(), first), anycclSuccess) << rank.last_error();
      EXPECT_EQ(anycclAllReduce(y.at(), y.at(), second, anycclFloat32, anycclSum,
                                rank.comm.handle(), other.handle()),
                anycclSuccess);
      EXPECT_OK(rank.device->record(queue, end));
      // A call that does not wait for the one before is over by then.
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      EXPECT_FALSE(*rank.device->is_past(end));
      held.go_on();
      rank.device.await(queue);
    }
    EXPECT_EQ(floats_on(x)[0], 8);
    EXPECT_EQ(floats_on(y)[0], 8);
    EXPECT_EQ(floats_on(y)[1], 2);
    EXPECT_OK(rank.device->drop_moment(end));
    EXPECT_OK(rank.device->drop_queue(queue));
  });
}

/// Two communicators in one group, in orders that differ: a kernel that waited in the stream would
/// keep the other one from starting.
TEST(Exchanges, of_a_group_do_not_wait_in_the_stream) {
  in_queues(2, [](RankOnDevice& rank) {
    auto part = rank.comm.split(0, 0);
    ASSERT_OK(part.status());
    use_queues(*part);
    const OnDevice x = rank.put({1}), y = rank.put({1});
    const bool is_first = rank.comm.rank() == Rank{0};
    const auto sum = [&](const Communicator& comm, const OnDevice& memory) {
      EXPECT_EQ(anycclAllReduce(memory.at(), memory.at(), 1, anycclFloat32, anycclSum,
                                comm.handle(), rank.stream.handle()),
                anycclSuccess);
    };
    constexpr int kGroups = 20;  // in each, threads put the calls there in one or the other order
    for (int i = 0; i < kGroups; ++i) {
      ASSERT_EQ(anycclGroupStart(), anycclSuccess);
      if (is_first) sum(rank.comm, x);
      sum(*part, y);
      if (!is_first) sum(rank.comm, x);
      ASSERT_EQ(anycclGroupEnd(), anycclSuccess) << rank.last_error();
    }
    rank.device.await(rank.queue);
    EXPECT_EQ(floats_on(x), Floats{1 << kGroups});
    EXPECT_EQ(floats_on(y), Floats{1 << kGroups});
    EXPECT_EQ(exchanges_of(rank.comm), static_cast<std::uint32_t>(kGroups));
    EXPECT_OK(part->destroy());
  });
}

/// What two kernels of one device need to exchange eight bytes, each in its queue.
struct TwoKernels {
  explicit TwoKernels(const CurrentDevice& device)
      : memory(*device, 65536 * 3), x(device, Bytes(64, std::byte{1})) {
    for (const std::uint32_t me : {0U, 1U}) {
      queues[me] = *device->make_queue(false);
      DeviceExchange& mine = each[me];
      mine.ranks = 2;
      mine.me = me;
      mine.number = 1;
      for (const std::uint32_t rank : {0U, 1U})
        mine.lines[rank] = reinterpret_cast<std::uint64_t*>(memory.at() + rank * 65536);
      mine.stop = reinterpret_cast<std::uint32_t*>(memory.at() + 2 * 65536);
      mine.input = x.at();
      mine.bytes = mine.block = 8;
      mine.blocks = x.at() + 16 * (me + 1);
    }
  }
  void end_waits() {
    __atomic_store_n(const_cast<std::uint32_t*>(each[0].stop), 1U, __ATOMIC_RELAXED);
  }

  const Pinned memory;
  const OnDevice x;
  DeviceQueue queues[2];
  DeviceExchange each[2];
};

TEST(Exchanges, of_other_calls_wait_until_the_host_ends_that) {
  const CurrentDevice device(0);
  TwoKernels two(device);
  two.each[1].digest = 7;
  const DeviceMoment end = *device->make_moment();
  for (const std::uint32_t me : {0U, 1U}) EXPECT_OK(device->exchange(two.queues[me], two.each[me]));
  EXPECT_OK(device->record(two.queues[1], end));
  // A kernel that takes the other one's data is over by then.
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(*device->is_past(end));
  two.end_waits();
  for (const DeviceQueue queue : two.queues) {
    device.await(queue);
    EXPECT_OK(device->drop_queue(queue));
  }
  EXPECT_OK(device->drop_moment(end));
}

TEST(Exchanges, fill_both_sets_of_lines_before_numbers_come_again) {
  for (const std::uint32_t number : {0U, 1U, 1U << 30, (1U << 30) + 1, 3U << 30, (3U << 30) + 1})
    EXPECT_TRUE(Exchanges::fills_lines(number)) << number;
  for (const std::uint32_t number : {2U, 3U, (1U << 30) - 1, (1U << 30) + 2, ~0U})
    EXPECT_FALSE(Exchanges::fills_lines(number)) << number;
}

/// So no line keeps a number until it comes again.
TEST(Exchanges, fill_all_lines_at_the_first_one) {
  in_queues(2, [](RankOnDevice& rank) {
    const OnDevice x = rank.put({1});
    EXPECT_EQ(rank.all_reduce(x.at(), x.at(), 1), anycclSuccess) << rank.last_error();
    rank.device.await(rank.queue);
    const std::uint64_t* const lines = wires_of(rank.comm).lines(uindex(rank.comm.rank()), 1);
    EXPECT_EQ(__atomic_load_n(lines + DeviceExchange::kLines - 1, __ATOMIC_RELAXED),
              std::uint64_t{1} << 32);
  });
}

TEST(Exchanges, fill_all_lines_where_the_caller_says_so) {
  const CurrentDevice device(0);
  constexpr std::size_t kLines = DeviceExchange::kLines;
  const Pinned memory(*device, 65536);
  auto* const lines = reinterpret_cast<std::uint64_t*>(memory.at());
  const OnDevice x(device, Bytes(8, std::byte{1}));
  DeviceExchange one;
  one.ranks = 1;
  one.lines[0] = lines;
  one.stop = reinterpret_cast<const std::uint32_t*>(lines + kLines);
  one.input = one.blocks = x.at();
  one.bytes = one.block = 8;
  const DeviceQueue queue = *device->make_queue(false);
  for (const bool fills : {true, false}) {
    one.number += 7;
    one.digest = 5;
    one.fills_lines = fills;
    EXPECT_OK(device->exchange(queue, one));
    device.await(queue);
    EXPECT_EQ(lines[0], std::uint64_t{one.number} << 32 | 5);
    EXPECT_EQ(lines[2], std::uint64_t{one.number} << 32 | 0x01010101);
    EXPECT_EQ(lines[kLines - 1], std::uint64_t{7} << 32);
    EXPECT_EQ(lines[kLines], 0U);
  }
  EXPECT_OK(device->drop_queue(queue));
}

}  // namespace
}  // namespace anyccl::test
