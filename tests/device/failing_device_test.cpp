// What becomes of calls when the driver is missing or fails. Each case runs in a child, as the
// driver reads its settings when it is loaded.

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <fstream>
#include <iterator>
#include <vector>

#include "device/child.hpp"
#include "device/device_memory.hpp"
#include "platform/device/cuda/driver_api.hpp"
#include "support/effort.hpp"

namespace anyccl::test {
namespace {

bool has_driver() {
  std::ifstream maps("/proc/self/maps");
  const std::string text{std::istreambuf_iterator<char>(maps), {}};
  return text.find("libcuda") != std::string::npos;
}

TEST(FailingDevice, a_program_of_the_host_never_loads_the_driver) {
  expect_in_child({}, [] {
    run_ranks(2, [](Communicator& comm) {
      std::vector<float> x{1};
      EXPECT_OK(wait(comm.all_reduce(view(x), view(x), ReduceOp::sum)));
      EXPECT_EQ(x[0], 2);
    });
    EXPECT_FALSE(has_driver());
    EXPECT_TRUE(open_device(0).ok());  // it is there
    EXPECT_TRUE(has_driver());
  });
}

TEST(FailingDevice, a_communicator_does_not_start_a_driver_that_is_loaded) {
  expect_in_child({}, [] {
    void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
    const auto count = reinterpret_cast<int (*)(int*)>(dlsym(driver, "cuDeviceGetCount"));
    run_ranks(1, [](Communicator&) {});
    int devices = 0;
    EXPECT_EQ(count(&devices), 3);  // CUDA_ERROR_NOT_INITIALIZED
  });
}

enum class Form : std::uint8_t { blocking, issued, queued, messages };

/// One each way, between two ranks.
anycclResult_t exchange(void* x, anycclComm_t comm) {
  int me = 0;
  anycclCommUserRank(comm, &me);
  anycclGroupStart();
  anycclSend(x, 512, anycclFloat32, 1 - me, comm, nullptr);
  anycclRecv(static_cast<std::byte*>(x) + 2048, 512, anycclFloat32, 1 - me, comm, nullptr);
  return anycclGroupEnd();
}

anycclResult_t sum(void* x, anycclComm_t comm, Form form) {
  if (form == Form::messages) return exchange(x, comm);
  if (form != Form::issued)
    return anycclAllReduce(x, x, 1024, anycclFloat32, anycclSum, comm, nullptr);
  anycclCall_t call{};
  call.size = sizeof call;
  call.sendbuff = call.recvbuff = x;
  call.count = 1024;
  call.datatype = anycclFloat32;
  anycclWork_t work = nullptr;
  anycclResult_t result = anycclIssue(&call, comm, &work);
  if (result == anycclSuccess) result = anycclWorkWait(work);
  EXPECT_EQ(anycclWorkFree(work), anycclSuccess);
  return result;
}

/// Every rank's call is over and names the function that failed on one of them, and no call works
/// afterwards. If the result of one rank cannot be copied, that of another one may have been
/// before: then its next call fails.
void expect_named_failure(const std::string& fault, const std::string& words,
                          Form form = Form::blocking) {
  expect_in_child({{"FAIL", fault}}, [&] {
    std::atomic<int> named = 0;
    std::barrier both(2);
    const CurrentDevice current(0);
    run_ranks(2, [&](Communicator& comm) {
      const auto device = open_device(device_of(comm));
      ASSERT_OK(device.status());
      ASSERT_OK((*device)->enter());
      const auto x = (*device)->allocate(4096);
      ASSERT_OK(x.status());
      both.arrive_and_wait();  // the other rank has memory, too, before a device is lost
      anycclResult_t result = sum(*x, comm.handle(), form);
      if (result == anycclSuccess) result = sum(*x, comm.handle(), form);
      EXPECT_NE(result, anycclSuccess);
      const std::string text = anycclGetLastError(nullptr);
      if (text.find(words) != std::string::npos && text.find("rank ") != std::string::npos)
        ++named;
      else
        ADD_FAILURE() << text;
      EXPECT_NE(sum(*x, comm.handle(), form), anycclSuccess);
    });
    EXPECT_EQ(named.load(), 2);
  });
}

TEST(FailingDevice, a_copy_that_fails_ends_the_call_on_all_ranks) {
  expect_named_failure("cuMemcpy:1", "cuMemcpyAsync");
  expect_named_failure("cuMemcpy:3", "cuMemcpyAsync");
}
TEST(FailingDevice, a_copy_that_fails_ends_the_issued_call_on_all_ranks) {
  expect_named_failure("cuMemcpy:1", "cuMemcpyAsync", Form::issued);
  expect_named_failure("cuMemcpy:3", "cuMemcpyAsync", Form::issued);
}
TEST(FailingDevice, memory_that_cannot_be_pinned_ends_the_call_on_all_ranks) {
  expect_named_failure("cuMemHostRegister:1", "cuMemHostRegister");
}
TEST(FailingDevice, a_queue_that_cannot_be_made_ends_the_call_on_all_ranks) {
  expect_named_failure("cuStreamCreate:1", "cuStreamCreateWithPriority");
}
TEST(FailingDevice, an_event_that_cannot_be_recorded_ends_the_call_on_all_ranks) {
  for (const char* const fault : {"cuEventRecord:1", "cuEventRecord:3", "cuEventRecord:5"})
    for (const Form form : {Form::blocking, Form::issued})
      expect_named_failure(fault, "cuEventRecord", form);
}
TEST(FailingDevice, an_event_that_cannot_be_asked_for_ends_the_call_on_all_ranks) {
  for (const Form form : {Form::blocking, Form::issued})
    expect_named_failure("cuEventQuery:1", "cuEventQuery", form);
}
TEST(FailingDevice, a_lost_device_ends_the_call_on_all_ranks) {
  for (const Form form : {Form::blocking, Form::issued})
    expect_named_failure("lost:1", "CUDA_ERROR_LAUNCH_FAILED", form);
}

TEST(FailingDevice, a_driver_that_cannot_tell_what_memory_is_ends_the_call_on_all_ranks) {
  expect_named_failure("cuPointerGetAttributes:1", "cuPointerGetAttributes");
}

/// Two ranks make four calls each while a function of the driver fails once. A call that fails
/// names it on both ranks, unless the rank has not come to its calls, and so ends its communicator.
void call_while_it_fails(const std::string& function, Form form) {
  std::atomic<bool> never_began = false;
  run_ranks(2, [&](Communicator& comm) {
    const auto device = open_device(0);
    void* x = nullptr;
    if (device.ok() && (*device)->enter().ok()) {
      const auto made = (*device)->allocate(4096);
      if (made.ok()) x = *made;
    }
    if (x == nullptr || anycclCommSetDevice(comm.handle(), 0) != anycclSuccess) {
      never_began = true;
      EXPECT_OK(comm.abort());
      return;
    }
    if (form >= Form::queued && anycclCommUseDeviceQueues(comm.handle()) != anycclSuccess) {
      const std::string text = anycclGetLastError(nullptr);  // and calls are done by copies
      EXPECT_TRUE(never_began || text.find(function) != std::string::npos ||
                  text.find("lacks") != std::string::npos)
          << text;
    }
    for (int i = 0; i < 4; ++i) {
      if (sum(x, comm.handle(), form) == anycclSuccess) continue;
      const std::string text = anycclGetLastError(nullptr);
      // What the driver does not find has no error of its own.
      EXPECT_TRUE(never_began || text.find(function) != std::string::npos ||
                  text.find("no kernel") != std::string::npos)
          << text;
      break;
    }
    static_cast<void>((*device)->release(x));
    (*device)->leave();
  });
}

TEST(FailingDevice, each_function_of_the_driver_may_fail_once_at_any_call) {
#define ANYCCL_TEST_NAME(name, parameters) #name,
  constexpr const char* kFunctions[] = {ANYCCL_CUDA_FUNCTIONS(ANYCCL_TEST_NAME)};
#undef ANYCCL_TEST_NAME
  const std::vector<int> calls =
      effort<std::vector<int>>({1, 4}, {1, 2, 5}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 20, 30, 50});
  for (const char* const function : kFunctions)
    for (const int call : calls)
      for (const Form form : {Form::blocking, Form::issued, Form::queued, Form::messages}) {
        const std::string fault = std::string(function) + ":" + std::to_string(call);
        SCOPED_TRACE(fault);
        const std::string_view exported(function);
        const std::string called(exported.substr(0, exported.find("_v")));  // without its version
        expect_in_child({{"FAIL", fault}}, [&] { call_while_it_fails(called, form); });
      }
}

/// The limit of the communicator is for what somebody waits for.
TEST(FailingDevice, a_receive_that_nobody_waits_for_has_no_limit) {
  expect_in_child({}, [] {
    ::setenv("ANYCCL_OP_TIMEOUT", "1", 1);
    run_ranks(2, [](Communicator& comm) {
      ASSERT_EQ(anycclCommSetDevice(comm.handle(), 0), anycclSuccess);
      const CurrentDevice device(0);
      const OnDevice x = eight_bytes(device, 7);
      if (comm.rank() == Rank{1}) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1300));  // beyond the limit
        EXPECT_EQ(anycclSend(x.at(), 1, anycclInt64, 0, comm.handle(), nullptr), anycclSuccess);
        return;
      }
      anycclCall_t call{};
      call.size = sizeof call;
      call.collective = anycclCollRecv;
      call.recvbuff = x.at();
      call.count = 1;
      call.datatype = anycclInt64;
      call.root = 1;
      anycclWork_t work = nullptr;
      EXPECT_EQ(anycclIssue(&call, comm.handle(), &work), anycclSuccess);
      int done = 0;
      while (done == 0) {
        EXPECT_EQ(anycclWorkTest(work, &done), anycclSuccess) << anycclGetLastError(nullptr);
        std::this_thread::sleep_for(
            std::chrono::milliseconds(1));  // it is not to wait, but to look
      }
      EXPECT_EQ(anycclWorkFree(work), anycclSuccess);
    });
  });
}

TEST(FailingDevice, a_forked_child_does_not_start_prepared_calls) {
  expect_in_child({}, [] {
    const CurrentDevice current(0);
    run_ranks(1, [&](Communicator& comm) {
      const OnDevice x = eight_bytes(current, 7);
      anycclCall_t call{};
      call.size = sizeof call;
      call.sendbuff = call.recvbuff = x.at();
      call.count = 1;
      call.datatype = anycclInt64;
      anycclPrepared_t prepared = nullptr;
      EXPECT_EQ(anycclPrepare(&call, comm.handle(), &prepared), anycclSuccess);
      expect_in_child({}, [&] {
        anycclWork_t work = nullptr;
        EXPECT_EQ(anycclStart(prepared, &work), anycclInvalidUsage);
        EXPECT_EQ(work, nullptr);
      });
      EXPECT_EQ(anycclPreparedFree(prepared), anycclSuccess);
    });
  });
}

/// An abort may come while the result is copied, which takes long here.
TEST(FailingDevice, nothing_is_written_after_a_call_has_returned) {
  expect_in_child({{"CHAOS", "7,3000"}}, [] {
    const CurrentDevice device(0);
    constexpr std::size_t kBytes = std::size_t{1} << 20, kTail = 64;
    const Pinned zeros(*device, 4096);
    const DeviceQueue queue = *device->make_queue(false);
    for (int i = 0; i < 20; ++i) {
      const OnDevice x(device, std::vector<std::byte>(kBytes, std::byte{1}));
      auto comms = Communicator::init_all(1);
      ASSERT_OK(comms.status());
      std::jthread other([&] {
        // Calls take some milliseconds here, so that some aborts come in each part of one.
        std::this_thread::sleep_for(std::chrono::microseconds(500 * i));
        EXPECT_OK(comms->at(0).abort());
      });
      anycclAllReduce(x.at(), x.at(), kBytes, anycclUint8, anycclSum, comms->at(0).handle(),
                      nullptr);  // with or without an error
      EXPECT_OK(device->copy(queue, x.at() + kBytes - kTail, zeros.at(), kTail));
      device.await(queue);
      other.join();
      // Nothing tells of a copy that must not come; its delays here are 3 ms at most.
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      const std::vector<std::byte> bytes = x.bytes();
      EXPECT_EQ(std::count(bytes.end() - kTail, bytes.end(), std::byte{0}), kTail) << i;
    }
  });
}

TEST(FailingDevice, a_program_may_exit_while_issued_calls_wait_for_their_streams) {
  expect_in_child({}, [] {
    const CurrentDevice device(0);
    const OnDevice x = eight_bytes(device, 7);
    const Pinned word(*device, 4096);
    const DeviceQueue queue = *device->make_queue(false);
    EXPECT_OK(device->wait_word(queue, word.word(), 1));
    const auto stream = Stream::wrap(0, queue);
    const auto comms = Communicator::init_all(1);
    anycclCall_t call{};
    call.size = sizeof call;
    call.sendbuff = call.recvbuff = x.at();
    call.count = 1;
    call.datatype = anycclInt64;
    call.stream = stream->handle();
    anycclWork_t work = nullptr;
    EXPECT_EQ(anycclIssue(&call, comms->at(0).handle(), &work), anycclSuccess);
    std::exit(testing::Test::HasFailure() ? 1 : 0);
  });
}

TEST(FailingDevice, no_device_is_named) {
  expect_in_child({{"DEVICES", "0"}}, [] {
    const Status status = open_device(0).status();
    EXPECT_EQ(status.code(), Code::unsupported);
    EXPECT_FALSE(status.message().empty());
    EXPECT_EQ(device_in_use(), nullptr);
  });
}

}  // namespace
}  // namespace anyccl::test
