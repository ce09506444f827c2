// Results as NCCL numbers them, and refusals.

#include <dlfcn.h>

#include "face_ranks.hpp"

namespace anyccl::test {
namespace {

using FaceErrors = FaceRanks;
using FaceStreams = FaceRanks;

TEST_F(FaceErrors, of_calls_that_are_not_supported_are_invalid_usage) {
  expect_error(ncclCommSuspend(comms_[0], NCCL_SUSPEND_MEM), ncclInvalidUsage, "", comms_[0]);
  EXPECT_STRNE(ncclGetLastError(comms_[0]), "");
}

TEST_F(FaceErrors, of_revoked_communicators_are_internal_errors) {
  ASSERT_EQ(ncclCommRevoke(comms_[0], NCCL_REVOKE_DEFAULT), ncclSuccess);
  float x = 1;
  EXPECT_EQ(ncclAllReduce(&x, &x, 1, ncclFloat, ncclSum, comms_[0], nullptr), ncclInternalError);
  ncclResult_t state = ncclSuccess;
  EXPECT_EQ(ncclCommGetAsyncError(comms_[0], &state), ncclSuccess);
  EXPECT_EQ(state, ncclInternalError);
}

/// The result of waiting for a message that nobody sends, in a program of that version.
ncclResult_t wait_too_long(int version) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.version = static_cast<unsigned int>(version);
  ncclUniqueId id;
  std::array<ncclComm_t, 2> comms{};
  EXPECT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  EXPECT_EQ(ncclGroupStart(), ncclSuccess);
  for (int r = 0; r < 2; ++r)
    EXPECT_EQ(ncclCommInitRankConfig(&comms[static_cast<std::size_t>(r)], 2, id, r, &config),
              ncclSuccess);
  EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
  float x = 0;
  const ncclResult_t result = ncclRecv(&x, 1, ncclFloat, 1, comms[0], nullptr);
  for (const ncclComm_t comm : comms) ncclCommAbort(comm);
  return result;
}

TEST(FaceTimeouts, are_results_of_their_own_from_version_2_30_on) {
  ASSERT_EQ(setenv("ANYCCL_OP_TIMEOUT", "1", 1), 0);
  EXPECT_EQ(wait_too_long(22907), ncclRemoteError);
  EXPECT_EQ(wait_too_long(23007), 8);
  unsetenv("ANYCCL_OP_TIMEOUT");
  EXPECT_STREQ(ncclGetErrorString(static_cast<ncclResult_t>(8)), "the time limit has passed");
}

TEST_F(FaceErrors, say_what_was_wrong_with_the_call_of_their_communicator) {
  int x = 1;
  EXPECT_EQ(ncclAllReduce(&x, &x, 1, ncclInt, ncclNumOps, comms_[0], nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclBroadcast(&x, &x, 1, ncclInt, 7, comms_[1], nullptr), ncclInvalidArgument);
  expect_error(ncclInvalidArgument, ncclInvalidArgument, "7", comms_[1]);
  expect_error(ncclInvalidArgument, ncclInvalidArgument, "7");
  EXPECT_STREQ(ncclGetLastError(comms_[0]), "");  // it was refused before
}

TEST_F(FaceErrors, have_words_for_each_result) {
  for (int result = 0; result <= 8; ++result)
    EXPECT_STRNE(ncclGetErrorString(static_cast<ncclResult_t>(result)), "an unknown result code");
  EXPECT_STREQ(ncclGetErrorString(static_cast<ncclResult_t>(9)), "an unknown result code");
}

TEST_F(FaceErrors, of_messages_from_any_rank) {
  float x = 0;
  EXPECT_EQ(ncclRecv(&x, 1, ncclFloat, -1, comms_[0], nullptr), ncclInvalidArgument);
}

TEST_F(FaceErrors, of_functions_for_code_on_devices) {
  for (const char* name : {"ncclDevCommCreate", "ncclDevCommDestroy", "ncclCommQueryProperties",
                           "ncclGetPeerDevicePointer", "ncclGetLsaDevicePointer",
                           "ncclGetLsaMultimemDevicePointer", "ncclGetMultimemDevicePointer"}) {
    using Function = ncclResult_t (*)(void*, void*, void*, void*);
    const auto function = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
    ASSERT_NE(function, nullptr) << name;
    expect_error(function(comms_[0], nullptr, nullptr, nullptr), ncclInvalidUsage,
                 std::string(name) + " is not supported");
  }
}

TEST_F(FaceStreams, need_a_device) {
  int x[2] = {1, 2}, place = 0;
  const auto stream = reinterpret_cast<cudaStream_t>(&place);
  expect_error(ncclAllReduce(&x[0], &x[0], 1, ncclInt, ncclSum, comms_[0], stream),
               ncclInvalidArgument, "stream is not NULL, and the communicator has no device",
               comms_[0]);
  expect_error(ncclSignal(1, 0, 0, 0, comms_[0], stream), ncclInvalidArgument, "no device");
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(ncclAllReduce(&x[0], &x[0], 1, ncclInt, ncclSum, comms_[0], stream),
            ncclInvalidArgument);
  EXPECT_EQ(ncclAllReduce(&x[1], &x[1], 1, ncclInt, ncclSum, comms_[1], nullptr), ncclSuccess);
  expect_error(ncclGroupEnd(), ncclInvalidArgument, "no device");
}

TEST(FaceMemory, is_of_the_host_where_no_device_is_used) {
  void* memory = nullptr;
  ASSERT_EQ(ncclMemAlloc(&memory, 1000), ncclSuccess);
  static_cast<char*>(memory)[999] = 1;
  EXPECT_EQ(ncclMemFree(memory), ncclSuccess);
  EXPECT_EQ(ncclMemFree(nullptr), ncclSuccess);
  EXPECT_EQ(ncclMemAlloc(nullptr, 1), ncclInvalidArgument);
}

TEST_F(FaceErrors, of_simulations_that_are_not_initialized) {
  ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
  info.magic = 0;
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  expect_error(ncclGroupSimulateEnd(&info), ncclInvalidArgument, "NCCL_SIM_INFO_INITIALIZER");
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);  // the group has ended
}

TEST_F(FaceErrors, do_not_keep_a_simulation_from_saying_a_time) {
  float x[2] = {1, 2};
  ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  for (std::size_t r = 0; r < 2; ++r)
    EXPECT_EQ(ncclAllReduce(&x[r], &x[r], 1, ncclFloat, ncclSum, comms_[r], nullptr), ncclSuccess);
  ASSERT_EQ(ncclGroupSimulateEnd(&info), ncclSuccess);
  EXPECT_GT(info.estimatedTime, 0);
  EXPECT_EQ(x[0], 1);
}

}  // namespace
}  // namespace anyccl::test
