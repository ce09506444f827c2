// Random collectives, one behind the other, with buffers of each rank where they happen to be, on a
// driver whose work comes late and in pieces.

#include <atomic>
#include <csignal>
#include <functional>
#include <new>

#include "c/handle.hpp"
#include "device/device_trial.hpp"
#include "device/one_machine.hpp"
#include "framework/device/device_queues.hpp"
#include "support/effort.hpp"

namespace anyccl::test {
namespace {

/// Device 0 is the same for all ranks; else each has its own, if there are so many.
enum class On { device_0, own_devices };

int device_for(const Communicator& comm, On on) {
  return on == On::device_0 ? 0 : own_device(comm);
}

/// All calls of a rank are in a stream, and then in none. In queues they are in a stream.
void make_all_calls(Communicator& comm, bool in_queues, int calls, int number) {
  const CurrentDevice device(number);
  const DeviceQueue queue = *device->make_queue(false);
  auto stream = Stream::wrap(number, queue);
  ASSERT_OK(stream.status());
  if (in_queues) return make_calls({comm, device, stream->handle(), queue}, 20261201, calls);
  for (const bool in_stream : {true, false})
    make_calls({comm, device, in_stream ? stream->handle() : nullptr}, 20261130, calls);
}

using SettingsOf = std::function<Settings(int rank)>;

/// So many that each rank can have one.
SettingsOf with_devices(const SettingsOf& settings) {
  return [=](int rank) {
    Settings all = settings(rank);
    all.emplace_back("SIMULATED_CUDA_DEVICES", "8");
    return all;
  };
}

void expect_right(int ranks, bool in_queues, const SettingsOf& settings, int calls,
                  On on = On::device_0) {
  const auto outcomes = run_processes(
      ranks,
      [&](Communicator& comm) {
        const int number = device_for(comm, on);
        ASSERT_EQ(anycclCommSetDevice(comm.handle(), number), anycclSuccess);
        const auto queued = in_queues ? anycclCommUseDeviceQueues(comm.handle()) : anycclSuccess;
        ASSERT_EQ(queued, anycclSuccess) << anycclGetLastError(comm.handle());
        make_all_calls(comm, in_queues, calls, number);
      },
      with_devices(settings), effort(60, 120, 1200));
  expect_all_passed(outcomes);
}

Settings late(int rank) {
  return {{"SIMULATED_CUDA_CHAOS", std::to_string(rank + 7) + ",60"}};
}
Settings one_hardware_queue(int) {
  return {{"SIMULATED_CUDA_CONNECTIONS", "1"}, {"SIMULATED_CUDA_ONE_PRIORITY", "1"}};
}
Settings short_queues(int) {
  return {{"SIMULATED_CUDA_DEPTH", "8"}};
}

TEST(RandomCallsOnDevice, are_right_between_processes) {
  expect_right(effort(2, 2, 3), false, late, effort(50, 300, 5000));
}

TEST(RandomCallsOnDevice, are_right_with_one_hardware_queue_and_with_short_queues) {
  for (const SettingsOf& settings : {SettingsOf(one_hardware_queue), SettingsOf(short_queues)})
    expect_right(effort(2, 2, 3), false, settings, effort(20, 50, 1000));
}

TEST(RandomCallsOnDevice, are_right_in_queues) {
  expect_right(effort(2, 3, 4), true, late, effort(50, 300, 10000), On::own_devices);
}

TEST(RandomCallsOnDevice, are_right_in_queues_of_one_device_of_all) {
  const OneMachine machine;
  const auto settings = [&](int rank) {
    Settings all = late(rank);
    for (const auto& one : machine.settings()) all.push_back(one);
    return all;
  };
  expect_right(effort(2, 3, 4), true, settings, effort(50, 300, 5000));
}

TEST(RandomCallsOnDevice, are_right_in_queues_that_share_one_of_the_hardware_or_are_short) {
  for (const SettingsOf& settings : {SettingsOf(one_hardware_queue), SettingsOf(short_queues)})
    expect_right(effort(2, 3, 4), true, settings, effort(20, 60, 1000), On::own_devices);
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

/// One kernel does small calls, unless an algorithm is named.
const std::vector<Settings> kOneKernelOrMore{{}, {{"ANYCCL_ALGO", "all_reduce:one_shot"}}};

void expect_both_named(const Settings& settings) {
  const auto body = [](Communicator& comm) {
    const int number = own_device(comm);
    ASSERT_EQ(anycclCommSetDevice(comm.handle(), number), anycclSuccess);
    ASSERT_EQ(anycclCommUseDeviceQueues(comm.handle()), anycclSuccess);
    const CurrentDevice device(number);
    const DeviceQueue queue = *device->make_queue(false);
    const Stream stream = *Stream::wrap(number, queue);
    const OnDevice x = eight_bytes(device, 1);
    anycclCall_t call = most_of(x);
    call.stream = stream.handle();
    if (comm.rank() == Rank{1}) call.op = anycclMin;
    EXPECT_EQ(anycclRun(&call, comm.handle()), anycclSuccess);
    device.await(queue);  // which does not go on before the failure can be seen
    anycclResult_t result = anycclSuccess;
    EXPECT_EQ(anycclCommGetAsyncError(comm.handle(), &result), anycclSuccess);
    EXPECT_EQ(result, anycclInvalidUsage);
    const std::string why = anycclGetLastError(comm.handle());
    EXPECT_NE(why.find("all_reduce of 1 i64, max"), std::string::npos) << why;
    EXPECT_NE(why.find("all_reduce of 1 i64, min"), std::string::npos) << why;
  };
  expect_all_passed(run_processes(2, body, with_devices([&](int) { return settings; })));
}

TEST(RandomCallsOnDevice, other_calls_in_queues_are_both_named) {
  for (const Settings& settings : kOneKernelOrMore) expect_both_named(settings);
}

void expect_dead_rank_named(const Settings& settings) {
  const auto body = [&](Communicator& comm) {
    const int number = own_device(comm);
    ASSERT_EQ(anycclCommSetDevice(comm.handle(), number), anycclSuccess);
    ASSERT_EQ(anycclCommUseDeviceQueues(comm.handle()), anycclSuccess);
    const CurrentDevice device(number);
    const DeviceQueue queue = *device->make_queue(false);
    const Stream stream = *Stream::wrap(number, queue);
    const OnDevice x = eight_bytes(device, 1);
    const Pinned word(*device, 4096);
    const bool dies = comm.rank() == Rank{2};
    anycclCall_t call = most_of(x);
    call.stream = stream.handle();
    for (int i = 0; i < 7; ++i) EXPECT_EQ(anycclRun(&call, comm.handle()), anycclSuccess);
    device.await(queue);
    const Wires& wires = comm.handle()->device.queues.load()->wires();
    const std::uint64_t line =
        __atomic_load_n(wires.lines(uindex(comm.rank()), 1), __ATOMIC_RELAXED);
    const bool may_exchange = settings.empty() && open_device(comm.size() - 1).ok();
    EXPECT_EQ(line != 0, may_exchange);                             // one kernel has done a call
    if (dies) EXPECT_OK(device->wait_word(queue, word.word(), 1));  // all ranks meet in the call
    EXPECT_EQ(anycclRun(&call, comm.handle()), anycclSuccess);
    if (dies) ::raise(SIGKILL);
    device.await(queue);
    anycclResult_t result = anycclSuccess;
    EXPECT_EQ(anycclCommGetAsyncError(comm.handle(), &result), anycclSuccess);
    EXPECT_EQ(result, anycclRemoteError);
    EXPECT_EQ(anycclRun(&call, comm.handle()), anycclRemoteError);
    const std::string why = anycclGetLastError(comm.handle());
    EXPECT_NE(why.find("rank 2"), std::string::npos) << why;
  };
  const auto outcomes = run_processes(3, body, with_devices([&](int) { return settings; }));
  for (std::size_t r = 0; r < outcomes.size(); ++r)
    EXPECT_EQ(outcomes[r].exit_code, r == 2 ? -SIGKILL : 0) << r << ": " << outcomes[r].output;
}

TEST(RandomCallsOnDevice, a_rank_that_dies_in_queues_is_named_and_the_stream_of_others_goes_on) {
  for (const Settings& settings : kOneKernelOrMore) expect_dead_rank_named(settings);
}

/// The root has put some hundred tiles into its queues, which wait for the other rank.
TEST(RandomCallsOnDevice, a_rank_that_dies_ends_the_wait_for_room_in_queues) {
  const auto outcomes = run_processes(
      2,
      [](Communicator& comm) {
        ASSERT_EQ(anycclCommSetDevice(comm.handle(), 0), anycclSuccess);
        ASSERT_EQ(anycclCommUseDeviceQueues(comm.handle()), anycclSuccess);
        const CurrentDevice device(0);
        const DeviceQueue queue = *device->make_queue(false);
        const Stream stream = *Stream::wrap(0, queue);
        constexpr std::size_t kBytes = std::size_t{256} << 20;
        void* const x = *device->allocate(kBytes);
        const Pinned word(*device, 4096);
        const auto call = [&] {
          return anycclBroadcast(x, x, kBytes, anycclUint8, 0, comm.handle(), stream.handle());
        };
        if (comm.rank() == Rank{1}) {
          EXPECT_OK(device->wait_word(queue, word.word(), 1));
          // By then the root waits for room, mostly; its error is the same if it does not yet.
          std::jthread killer([] {
            std::this_thread::sleep_for(std::chrono::milliseconds(200));
            ::raise(SIGKILL);
          });
          static_cast<void>(call());
          return;
        }
        EXPECT_EQ(call(), anycclRemoteError);
        const std::string why = anycclGetLastError(comm.handle());
        EXPECT_NE(why.find("rank 1"), std::string::npos) << why;
        device.await(queue);
      },
      [](int) {
        return Settings{{"SIMULATED_CUDA_DEVICE_MB", "512"}};
      });
  EXPECT_EQ(outcomes[0].exit_code, 0) << outcomes[0].output;
  EXPECT_EQ(outcomes[1].exit_code, -SIGKILL) << outcomes[1].output;
}

/// Also as soon as a call waits for room in its queues.
TEST(RandomCallsOnDevice, a_rank_that_leaves_without_a_call_in_queues_is_named) {
  const auto expect_named = [](std::size_t bytes, int root) {
    const auto stays = [=](Communicator& comm) {
      const CurrentDevice device(0);
      const DeviceQueue queue = *device->make_queue(false);
      const Stream stream = *Stream::wrap(0, queue);
      void* const x = *device->allocate(bytes);
      static_cast<void>(
          anycclBroadcast(x, x, bytes, anycclUint8, root, comm.handle(), stream.handle()));
      device.await(queue);
      anycclResult_t result = anycclSuccess;
      EXPECT_EQ(anycclCommGetAsyncError(comm.handle(), &result), anycclSuccess);
      EXPECT_EQ(result, anycclRemoteError);
      const std::string why = anycclGetLastError(comm.handle());
      EXPECT_NE(why.find("rank 1"), std::string::npos) << why;
    };
    expect_all_passed(run_processes(
        2,
        [&](Communicator& comm) {
          ASSERT_EQ(anycclCommSetDevice(comm.handle(), 0), anycclSuccess);
          ASSERT_EQ(anycclCommUseDeviceQueues(comm.handle()), anycclSuccess);
          if (comm.rank() == Rank{0}) stays(comm);
        },
        [](int) {
          return Settings{{"SIMULATED_CUDA_DEVICE_MB", "512"}};
        }));
  };
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{256} << 20})
    for (const int root : {0, 1}) expect_named(bytes, root);
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
