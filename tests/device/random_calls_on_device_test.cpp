// Random collectives, one behind the other, with buffers of each rank where they happen to be, on a
// driver whose work comes late and in pieces.

#include <atomic>
#include <csignal>
#include <functional>
#include <new>

#include "device/device_trial.hpp"
#include "support/effort.hpp"

namespace anyccl::test {
namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

void expect_right(const std::function<Settings(int rank)>& settings, int calls) {
  const auto outcomes = run_processes(
      effort(2, 2, 3),
      [&](Communicator& comm) {
        ASSERT_EQ(anycclCommSetDevice(comm.handle(), 0), anycclSuccess);
        const CurrentDevice device(0);
        auto stream = Stream::wrap(0, *device->make_queue(false));
        ASSERT_OK(stream.status());
        for (const bool in_stream : {true, false})
          make_calls({comm, device, in_stream ? stream->handle() : nullptr}, 20261130, calls);
      },
      settings, effort(60, 120, 1200));
  expect_all_passed(outcomes);
}

TEST(RandomCallsOnDevice, are_right_between_processes) {
  expect_right(
      [](int rank) {
        return Settings{{"SIMULATED_CUDA_CHAOS", std::to_string(rank + 7) + ",60"}};
      },
      effort(50, 300, 5000));
}

TEST(RandomCallsOnDevice, are_right_with_one_hardware_queue_and_with_short_queues) {
  expect_right(
      [](int) {
        return Settings{{"SIMULATED_CUDA_CONNECTIONS", "1"}, {"SIMULATED_CUDA_ONE_PRIORITY", "1"}};
      },
      effort(20, 50, 1000));
  expect_right([](int) { return Settings{{"SIMULATED_CUDA_DEPTH", "8"}}; }, effort(20, 50, 1000));
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
