// Calls that memory or a stream of a device does not fit.

#include <dlfcn.h>

#include "device/issued_calls.hpp"
#include "platform/device/cuda/driver_api.hpp"

namespace anyccl::test {
namespace {

TEST(RefusalsOnDevice, memory_that_does_not_fit_the_call_is_refused) {
  on_devices(1, [](RankOnDevice& rank) {
    const OnDevice x = rank.put({1, 2});
    EXPECT_REFUSED(anycclInvalidArgument, "sendbuff has 8 bytes up to the end",
                   rank.all_reduce(x.at(), x.at(), 3));
    const CurrentDevice another(1);
    const OnDevice there(another, bytes_of_floats({1, 2}));
    EXPECT_REFUSED(anycclInvalidArgument, "recvbuff lies on device 1, but the communicator has",
                   rank.all_reduce(x.at(), there.at(), 2));
    void* const freed = *rank.device->allocate(64);
    EXPECT_OK(rank.device->release(freed));
    EXPECT_REFUSED(anycclInvalidArgument, "was it freed?", rank.all_reduce(freed, x.at(), 2));
  });
}

TEST(RefusalsOnDevice, calls_that_do_not_block_are_refused_for_the_same_reasons) {
  on_devices(1, [](RankOnDevice& rank) {
    const OnDevice x = rank.put({1, 2});
    const anycclComm_t comm = rank.comm.handle();
    anycclCall_t call = call_of(anycclCollAllReduce, x.at(), x.at(), 3);
    anycclWork_t work = nullptr;
    anycclPrepared_t prepared = nullptr;
    const char* const words = "sendbuff has 8 bytes up to the end";
    EXPECT_REFUSED(anycclInvalidArgument, words, anycclIssue(&call, comm, &work));
    EXPECT_REFUSED(anycclInvalidArgument, words, anycclIssueAll(&call, 1, comm, &work));
    EXPECT_REFUSED(anycclInvalidArgument, words, anycclRunFor(&call, comm, 10, &work));
    EXPECT_REFUSED(anycclInvalidArgument, words, anycclPrepare(&call, comm, &prepared));
    call.count = 2;
    auto on_host = Stream::create();
    ASSERT_OK(on_host.status());
    call.stream = on_host->handle();
    EXPECT_REFUSED(anycclUnsupported, "a stream of anycclStreamCreate",
                   anycclIssue(&call, comm, &work));
    call.stream = rank.stream.handle();
    call.collective = anycclCollBroadcast;
    call.root = 5;
    EXPECT_REFUSED(anycclInvalidArgument, "5", anycclIssue(&call, comm, &work));
    EXPECT_EQ(work, nullptr);
    EXPECT_EQ(prepared, nullptr);
    EXPECT_EQ(rank.all_reduce(x.at(), x.at(), 2), anycclSuccess);
  });
}

TEST(RefusalsOnDevice, a_stream_that_is_captured_is_refused) {
  on_devices(1, [](RankOnDevice& rank) {
    void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    const auto begin = reinterpret_cast<cuda::Error (*)(cuda::Stream, int)>(
        dlsym(driver, "cuStreamBeginCapture_v2"));
    const auto end = reinterpret_cast<cuda::Error (*)(cuda::Stream, void**)>(
        dlsym(driver, "cuStreamEndCapture"));
    const OnDevice x = rank.put({1});
    const auto stream = reinterpret_cast<cuda::Stream>(rank.queue);
    const anycclCall_t call = sum_of(rank, x.at(), x.at(), 1);
    anycclPrepared_t prepared = nullptr;
    EXPECT_EQ(anycclPrepare(&call, rank.comm.handle(), &prepared), anycclSuccess);
    EXPECT_EQ(begin(stream, 0), 0);
    EXPECT_REFUSED(anycclInvalidUsage, "captured", rank.all_reduce(x.at(), x.at(), 1));
    anycclWork_t work = nullptr;
    EXPECT_REFUSED(anycclInvalidUsage, "captured", anycclStart(prepared, &work));
    void* graph = nullptr;
    EXPECT_EQ(end(stream, &graph), 0);
    EXPECT_EQ(rank.all_reduce(x.at(), x.at(), 1), anycclSuccess);
    EXPECT_EQ(anycclStart(prepared, &work), anycclSuccess);
    EXPECT_EQ(anycclWorkWait(work), anycclSuccess);
    EXPECT_EQ(anycclWorkFree(work), anycclSuccess);
    EXPECT_EQ(anycclPreparedFree(prepared), anycclSuccess);
  });
}

TEST(RefusalsOnDevice, other_calls_refuse_memory_of_a_device) {
  on_devices(1, [](RankOnDevice& rank) {
    const OnDevice x = rank.put({1});
    const anycclComm_t comm = rank.comm.handle();
    anycclWork_t work = nullptr;
    anycclWindow_t window = nullptr;
    const char* const words = "does not take buffers or streams of device 0";
    EXPECT_REFUSED(anycclUnsupported, words,
                   anycclAllReducePart(x.at(), x.at(), 1, anycclFloat32, anycclSum, comm, 0, 1));
    EXPECT_REFUSED(anycclUnsupported, words, anycclCommWindowRegister(comm, x.at(), 4, &window, 0));
    anycclMessage_t message{};
    message.count = 1;
    message.datatype = anycclFloat32;
    EXPECT_REFUSED(anycclUnsupported, words, anycclRecvFound(x.at(), &message, comm, &work));
    auto stream = Stream::create();
    ASSERT_OK(stream.status());
    EXPECT_REFUSED(
        anycclUnsupported, words,
        anycclAllReduce(x.at(), x.at(), 1, anycclFloat32, anycclSum, comm, stream->handle()));
  });
}

TEST(RefusalsOnDevice, a_stream_of_a_device_is_for_calls_alone) {
  on_devices(1, [](RankOnDevice& rank) {
    const anycclStream_t stream = rank.stream.handle();
    const auto is_refused = [](anycclResult_t result) {
      EXPECT_EQ(result, anycclInvalidUsage);
      EXPECT_NE(std::string(anycclGetLastError(nullptr)).find("is one of device 0"),
                std::string::npos);
    };
    anycclEvent_t event = nullptr;
    EXPECT_EQ(anycclEventCreate(&event), anycclSuccess);
    is_refused(anycclStreamSynchronize(stream));
    is_refused(anycclStreamQuery(stream));
    is_refused(anycclStreamWaitEvent(stream, event));
    is_refused(anycclEventRecord(event, stream));
    is_refused(anycclLaunchHostFunc(
        stream, [](void*) {}, nullptr));
    EXPECT_EQ(anycclEventDestroy(event), anycclSuccess);
    anycclStream_t none = nullptr;
    EXPECT_EQ(anycclStreamWrap(&none, 99, nullptr), anycclUnsupported);
    void* const per_thread = reinterpret_cast<void*>(2);
    EXPECT_EQ(anycclStreamWrap(&none, 0, per_thread), anycclUnsupported);
    EXPECT_EQ(none, nullptr);
  });
}

}  // namespace
}  // namespace anyccl::test
