// Random messages between processes, many at a time, in queues of devices whose work comes late and
// in pieces.

#include <memory>
#include <random>

#include "device/issued_calls.hpp"
#include "device/one_machine.hpp"
#include "support/effort.hpp"

namespace anyccl::test {
namespace {

/// One message of a round, which all ranks know.
struct Planned {
  int from, to;
  std::size_t count;
};

std::vector<Planned> next_round(std::mt19937& random, int ranks) {
  std::vector<Planned> round(1 + random() % 8);
  for (Planned& one : round) {
    one.from = static_cast<int>(random() % static_cast<unsigned>(ranks));
    one.to = (one.from + 1 + static_cast<int>(random() % static_cast<unsigned>(ranks - 1))) % ranks;
    one.count = 1 + random() % (random() % 4 == 0 ? 1500000 : 3000);
  }
  return round;
}

/// What is at place i of message m of a round.
float value_at(std::size_t round, std::size_t m, std::size_t i) {
  return static_cast<float>((round * 31 + m * 7 + i) % 8191);
}

/// Makes rounds of messages: in a group, or issued.
void make_rounds(Communicator& comm, int number, std::size_t rounds) {
  const CurrentDevice device(number);
  const DeviceQueue queue = *device->make_queue(false);
  const Stream stream = *Stream::wrap(number, queue);
  std::mt19937 random(20261201);
  const int me = index(comm.rank());
  for (std::size_t round = 0; round < rounds && !testing::Test::HasFailure(); ++round) {
    const auto planned = next_round(random, comm.size());
    const bool grouped = round % 3 != 2;
    std::vector<std::unique_ptr<OnDevice>> memory;
    std::vector<std::size_t> received;
    std::vector<anycclCall_t> calls;
    for (std::size_t m = 0; m < planned.size(); ++m) {
      const Planned& one = planned[m];
      if (one.from != me && one.to != me) continue;
      Floats x(one.count, -1);
      if (one.from == me)
        for (std::size_t i = 0; i < one.count; ++i) x[i] = value_at(round, m, i);
      memory.push_back(std::make_unique<OnDevice>(device, bytes_of_floats(x)));
      received.push_back(one.to == me ? m : planned.size());
      void* const at = memory.back()->at();
      const bool sends = one.from == me;
      calls.push_back(call_of(sends ? anycclCollSend : anycclCollRecv, sends ? at : nullptr,
                              sends ? nullptr : at, one.count, stream.handle(),
                              sends ? one.to : one.from));
    }
    std::vector<anycclWork_t> works(calls.size());
    if (grouped) anycclGroupStart();
    for (const anycclCall_t& call : calls) {
      if (!grouped) break;
      EXPECT_EQ(anycclRun(&call, comm.handle()), anycclSuccess);
    }
    EXPECT_EQ(grouped ? anycclGroupEnd()
                      : anycclIssueAll(calls.data(), calls.size(), comm.handle(), works.data()),
              anycclSuccess)
        << anycclGetLastError(comm.handle());
    for (anycclWork_t work : works) {
      if (work == nullptr) continue;
      EXPECT_EQ(anycclWorkWait(work), anycclSuccess) << anycclGetLastError(comm.handle());
      EXPECT_EQ(anycclWorkFree(work), anycclSuccess);
    }
    device.await(queue);
    for (std::size_t k = 0; k < memory.size(); ++k) {
      if (received[k] == planned.size()) continue;
      const Floats got = floats_on(*memory[k]);
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < got.size(); ++i)
        if (got[i] != value_at(round, received[k], i)) ++wrong;
      EXPECT_EQ(wrong, 0U) << "round " << round << ", message " << received[k];
    }
  }
}

void expect_right_between_processes(const Settings& settings, std::size_t rounds) {
  expect_all_passed(run_processes(
      effort(3, 3, 4),
      [&](Communicator& comm) {
        const int number = own_device(comm);
        ASSERT_EQ(anycclCommSetDevice(comm.handle(), number), anycclSuccess);
        ASSERT_EQ(anycclCommUseDeviceQueues(comm.handle()), anycclSuccess)
            << anycclGetLastError(comm.handle());
        make_rounds(comm, number, rounds);
      },
      [&](int rank) {
        Settings all = settings;
        all.emplace_back("SIMULATED_CUDA_DEVICES", "8");
        all.emplace_back("SIMULATED_CUDA_CHAOS", std::to_string(rank + 7) + ",60");
        return all;
      },
      effort(60, 120, 1200)));
}

TEST(RandomMessages, in_queues_are_right_between_processes) {
  expect_right_between_processes({}, effort<std::size_t>(12, 60, 2000));
}

TEST(RandomMessages, in_queues_are_right_with_one_queue_of_the_hardware) {
  expect_right_between_processes(
      {{"SIMULATED_CUDA_CONNECTIONS", "1"}, {"SIMULATED_CUDA_ONE_PRIORITY", "1"}},
      effort<std::size_t>(12, 60, 1000));
}

TEST(RandomMessages, in_queues_are_right_in_short_queues) {
  expect_right_between_processes({{"SIMULATED_CUDA_DEPTH", "8"}}, effort<std::size_t>(6, 30, 500));
}

}  // namespace
}  // namespace anyccl::test
