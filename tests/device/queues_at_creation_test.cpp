// Communicators that have queues of devices as soon as they are made.

#include "c/handle.hpp"
#include "device/in_queues.hpp"

namespace anyccl::test {
namespace {

/// The outcome of a split of all ranks with this in its configuration.
struct Made {
  anycclResult_t result;
  std::string error;
  bool has_queues = false;
};
Made split_with(const RankOnDevice& rank, int device_queues, int blocking = 1) {
  anycclConfig_t config = ANYCCL_CONFIG_INITIALIZER;
  config.deviceQueues = device_queues;
  config.blocking = blocking;
  anycclComm_t comm = nullptr;
  Made made{anycclCommSplit(rank.comm.handle(), 0, 0, &comm, &config), {}};
  while (made.result == anycclInProgress) {
    EXPECT_EQ(anycclCommGetAsyncError(comm, &made.result), anycclSuccess);
    std::this_thread::yield();
  }
  if (made.result == anycclSuccess) {
    made.has_queues = comm->device.queues.load() != nullptr;
    EXPECT_EQ(anycclCommDestroy(comm), anycclSuccess);  // an abort would end what peers still do
  } else {
    made.error = anycclGetLastError(nullptr);
    EXPECT_EQ(anycclCommAbort(comm), anycclSuccess);
  }
  return made;
}

TEST(QueuesAtCreation, are_there_if_the_configuration_says_so) {
  ::setenv("SIMULATED_CUDA_DEVICES", "8", 0);
  on_devices(3, [](RankOnDevice& rank) {
    for (const int blocking : {1, 0}) {
      EXPECT_FALSE(split_with(rank, ANYCCL_CONFIG_UNDEF_INT, blocking).has_queues);
      EXPECT_TRUE(split_with(rank, 1, blocking).has_queues);
      EXPECT_FALSE(split_with(rank, 0, blocking).has_queues);
    }
  });
}

TEST(QueuesAtCreation, are_those_of_the_parent_unless_the_configuration_says_so) {
  on_devices(2, [](RankOnDevice& rank) {
    anycclConfig_t config = ANYCCL_CONFIG_INITIALIZER;
    config.deviceQueues = 1;
    anycclComm_t parent = nullptr, part = nullptr;
    ASSERT_EQ(anycclCommSplit(rank.comm.handle(), 0, 0, &parent, &config), anycclSuccess);
    for (const int asked : {ANYCCL_CONFIG_UNDEF_INT, 0}) {
      config.deviceQueues = asked;
      ASSERT_EQ(anycclCommSplit(parent, 0, 0, &part, &config), anycclSuccess);
      EXPECT_EQ(part->device.queues.load() != nullptr, asked != 0);
      EXPECT_EQ(anycclCommDestroy(part), anycclSuccess);
    }
    EXPECT_EQ(anycclCommDestroy(parent), anycclSuccess);
  });
}

TEST(QueuesAtCreation, ranks_that_do_not_ask_for_the_same_are_told) {
  on_devices(2, [](RankOnDevice& rank) {
    const Made made = split_with(rank, index(rank.comm.rank()));
    EXPECT_EQ(made.result, anycclInvalidUsage);
    EXPECT_NE(made.error.find("config->deviceQueues"), std::string::npos) << made.error;
  });
}

TEST(QueuesAtCreation, a_number_that_means_nothing_is_refused) {
  on_devices(2, [](RankOnDevice& rank) {
    const Made made = split_with(rank, 2);
    EXPECT_EQ(made.result, anycclInvalidArgument);
    EXPECT_NE(made.error.find("config->deviceQueues is 2"), std::string::npos) << made.error;
  });
}

/// Calls of such a communicator go by copies.
TEST(QueuesAtCreation, are_not_there_where_a_rank_has_no_device) {
  on_devices(2, [](RankOnDevice& rank) {
    const int number = rank.comm.rank() == Rank{1} ? ANYCCL_NO_DEVICE : rank.device->number();
    EXPECT_EQ(anycclCommSetDevice(rank.comm.handle(), number), anycclSuccess);
    const Made made = split_with(rank, 1);
    EXPECT_EQ(made.result, anycclSuccess) << made.error;
    EXPECT_FALSE(made.has_queues);
  });
}

}  // namespace
}  // namespace anyccl::test
