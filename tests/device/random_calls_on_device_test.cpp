// Random collectives, one behind the other, with buffers of each rank where they happen to be, on a
// driver whose work comes late and in pieces.

#include <atomic>
#include <csignal>
#include <new>
#include <random>

#include "device/device_trial.hpp"
#include "support/effort.hpp"

namespace anyccl::test {
namespace {

/// So many calls, the same on all ranks but for where their buffers lie.
void make_calls(const OneRank& rank, unsigned seed, int calls) {
  std::mt19937 common(seed), own(seed + static_cast<unsigned>(index(rank.comm.rank())) + 1);
  const std::vector<Collective> all = scheduled();
  constexpr DType kTypes[] = {DType::f32, DType::bf16, DType::u8, DType::i64};
  constexpr std::size_t kCounts[] = {0, 1, 7, 257, 4099, 20000};
  constexpr Form kForms[] = {Form::blocking, Form::issued, Form::prepared};
  for (int i = 0; i < calls && !testing::Test::HasFailure(); ++i) {
    const Collective what = all[common() % all.size()];
    const DType type = kTypes[common() % std::size(kTypes)];
    const std::size_t count = kCounts[common() % std::size(kCounts)];
    const bool in_place = common() % 2 == 0;
    const int root = static_cast<int>(common() % static_cast<unsigned>(rank.comm.size()));
    const Sides sides{own() % 2 == 0, own() % 2 == 0, kForms[own() % std::size(kForms)]};
    SCOPED_TRACE(fmt::format("seed {}, call {}: {} of {} {}, root {}, in place {}", seed, i,
                             name(what), count, name_of(type), root, in_place));
    compare_with_host(rank, what, type, count, in_place, root, {sides});
  }
}

TEST(RandomCallsOnDevice, are_right_between_processes) {
  const auto outcomes = run_processes(
      effort(2, 2, 3),
      [](Communicator& comm) {
        ASSERT_EQ(anycclCommSetDevice(comm.handle(), 0), anycclSuccess);
        const CurrentDevice device(0);
        auto stream = Stream::wrap(0, *device->make_queue(false));
        ASSERT_OK(stream.status());
        for (const bool in_stream : {true, false})
          make_calls({comm, device, in_stream ? stream->handle() : nullptr}, 20261130,
                     effort(50, 300, 5000));
      },
      [](int rank) {
        return std::vector<std::pair<std::string, std::string>>{
            {"SIMULATED_CUDA_CHAOS", std::to_string(rank + 7) + ",60"}};
      },
      effort(60, 120, 1200));
  expect_all_passed(outcomes);
}

anycclCall_t most_of(const OnDevice& x) {
  anycclCall_t call{};
  call.size = sizeof call;
  call.sendbuff = call.recvbuff = x.at();
  call.count = 1;
  call.datatype = anycclInt64;
  call.op = anycclMax;
  return call;
}

TEST(RandomCallsOnDevice, a_rank_that_dies_is_named_by_the_others) {
  const auto outcomes = run_processes(3, [](Communicator& comm) {
    ASSERT_EQ(anycclCommSetDevice(comm.handle(), 0), anycclSuccess);
    const CurrentDevice device(0);
    const OnDevice x = eight_bytes(device, 1);
    for (int i = 0; i < 50; ++i) {
      if (comm.rank() == Rank{2} && i == 7) ::raise(SIGKILL);
      const Form form = comm.rank() == Rank{0} ? Form::issued : Form::blocking;
      const anycclResult_t result = make_call(most_of(x), comm.handle(), form);
      if (result == anycclSuccess) continue;
      EXPECT_EQ(result, anycclRemoteError);
      EXPECT_NE(std::string(anycclGetLastError(nullptr)).find("rank 2"), std::string::npos);
      const DeviceQueue queue = *device->make_queue(false);  // the device goes on
      device.await(queue);
      return;
    }
    ADD_FAILURE() << "no call has failed";
  });
  for (std::size_t r = 0; r < outcomes.size(); ++r)
    EXPECT_EQ(outcomes[r].exit_code, r == 2 ? -SIGKILL : 0) << r << ": " << outcomes[r].output;
}

TEST(RandomCallsOnDevice, a_rank_that_is_stopped_is_named_at_the_time_limit) {
  struct Shared {
    std::atomic<pid_t> stopped{0};
    std::atomic<bool> goes_on{false};
  };
  void* const page =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  for (const Form form : {Form::blocking, Form::issued}) {
    Shared& shared = *new (page) Shared;
    expect_all_passed(run_processes(2, [&](Communicator& comm) {
      ASSERT_EQ(anycclCommSetDevice(comm.handle(), 0), anycclSuccess);
      const CurrentDevice device(0);
      const OnDevice x = eight_bytes(device, 1);
      anycclCall_t call = most_of(x);
      EXPECT_EQ(make_call(call, comm.handle(), form), anycclSuccess);
      if (comm.rank() == Rank{1}) {
        shared.stopped = ::getpid();
        ::raise(SIGSTOP);
        shared.goes_on = true;
        return;
      }
      call.timeout_ms = 100;
      EXPECT_EQ(make_call(call, comm.handle(), form), anycclTimeout);
      EXPECT_NE(std::string(anycclGetLastError(nullptr)).find("rank 1"), std::string::npos)
          << anycclGetLastError(nullptr);
      // A signal that comes before the process has stopped does nothing, and nothing wakes this one
      // when it goes on.
      while (!shared.goes_on) {
        if (shared.stopped != 0) ::kill(shared.stopped, SIGCONT);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }));
  }
  munmap(page, sizeof(Shared));
}

}  // namespace
}  // namespace anyccl::test
