// What programs that were written for NCCL call, beyond collectives and streams.

#include <unistd.h>

#include <fstream>
#include <iterator>

#include "support/ranks.hpp"
#include "support/temporary_folder.hpp"

namespace anyccl::test {
namespace {

static_assert(ANYCCL_VERSION(ANYCCL_MAJOR, ANYCCL_MINOR, ANYCCL_PATCH) == ANYCCL_VERSION_CODE);
static_assert(ANYCCL_VERSION(2, 28, 3) > ANYCCL_VERSION(2, 9, 0));
static_assert(anycclUnhandledCudaError == anycclUnhandledDeviceError);

#define ASSERT_SUCCESS(...) ASSERT_EQ((__VA_ARGS__), anycclSuccess) << anycclGetLastError(nullptr)

/// All ranks of a communicator, in this thread.
class OneThread : public testing::Test {
 protected:
  void SetUp() override { ASSERT_SUCCESS(anycclCommInitAll(comms_.data(), kRanks, nullptr)); }
  void TearDown() override {
    for (anycclComm_t comm : comms_) EXPECT_EQ(anycclCommDestroy(comm), anycclSuccess);
  }
  /// The sum of the ranks' numbers, by a group of AllReduces of one thread.
  static std::vector<int> sums(const std::vector<anycclComm_t>& comms) {
    std::vector<int> values;
    for (std::size_t r = 0; r < comms.size(); ++r) values.push_back(static_cast<int>(r) + 1);
    EXPECT_EQ(anycclGroupStart(), anycclSuccess);
    for (std::size_t r = 0; r < comms.size(); ++r)
      anycclAllReduce(&values[r], &values[r], 1, anycclInt32, anycclSum, comms[r], nullptr);
    EXPECT_EQ(anycclGroupEnd(), anycclSuccess);
    return values;
  }

  static constexpr int kRanks = 4;
  std::vector<anycclComm_t> comms_ = std::vector<anycclComm_t>(kRanks, ANYCCL_COMM_NULL);
};

TEST_F(OneThread, splits_its_ranks_in_a_group) {
  std::vector<anycclComm_t> halves(kRanks, ANYCCL_COMM_NULL), pairs = halves;
  ASSERT_SUCCESS(anycclGroupStart());
  for (std::size_t r = 0; r < kRanks; ++r) {
    ASSERT_SUCCESS(anycclCommSplit(comms_[r], static_cast<int>(r) % 2, 0, &halves[r], nullptr));
    ASSERT_SUCCESS(anycclCommSplit(comms_[r], static_cast<int>(r) / 2, 0, &pairs[r], nullptr));
    EXPECT_TRUE(halves[r] == ANYCCL_COMM_NULL) << "it is there after the group";
  }
  ASSERT_SUCCESS(anycclGroupEnd());
  EXPECT_EQ(sums({halves[0], halves[2]}), (std::vector<int>{3, 3}));
  EXPECT_EQ(sums({pairs[2], pairs[3]}), (std::vector<int>{3, 3}));
  for (const auto& made : {halves, pairs})
    for (anycclComm_t comm : made) EXPECT_EQ(anycclCommDestroy(comm), anycclSuccess);
}

TEST_F(OneThread, hears_of_a_split_in_a_group_that_fails) {
  std::vector<anycclComm_t> made(kRanks, ANYCCL_COMM_NULL);
  ASSERT_SUCCESS(anycclGroupStart());
  for (std::size_t r = 0; r < kRanks; ++r)
    ASSERT_SUCCESS(anycclCommSplit(comms_[r], r == 2 ? -7 : 0, 0, &made[r], nullptr));
  EXPECT_NE(anycclGroupEnd(), anycclSuccess);
  EXPECT_NE(std::string(anycclGetLastError(nullptr)).find("color -7"), std::string::npos)
      << anycclGetLastError(nullptr);
  EXPECT_EQ(sums(comms_), std::vector<int>(kRanks, 10)) << "they go on";
}

TEST_F(OneThread, finalizes_its_ranks_in_a_group_after_its_calls) {
  std::vector<int> values(kRanks, 1);
  ASSERT_SUCCESS(anycclGroupStart());
  for (std::size_t r = 0; r < kRanks; ++r) {
    ASSERT_SUCCESS(anycclCommFinalize(comms_[r]));
    ASSERT_SUCCESS(
        anycclAllReduce(&values[r], &values[r], 1, anycclInt32, anycclSum, comms_[r], nullptr));
  }
  ASSERT_SUCCESS(anycclGroupEnd());
  EXPECT_EQ(values, std::vector<int>(kRanks, kRanks));
  EXPECT_EQ(anycclAllReduce(&values[0], &values[0], 1, anycclInt32, anycclSum, comms_[0], nullptr),
            anycclInvalidUsage);
}

TEST_F(OneThread, is_told_how_long_a_group_should_take) {
  std::vector<float> data(std::size_t{1} << 20);
  const auto estimate = [&](std::size_t count) {
    anycclSimInfo_t info = ANYCCL_SIM_INFO_INITIALIZER;
    EXPECT_EQ(anycclGroupStart(), anycclSuccess);
    for (anycclComm_t comm : comms_)
      anycclAllReduce(data.data(), data.data(), count, anycclFloat32, anycclSum, comm, nullptr);
    EXPECT_EQ(anycclGroupSimulateEnd(&info), anycclSuccess) << anycclGetLastError(nullptr);
    return info.estimatedTime;
  };
  data[0] = 1;
  EXPECT_GT(estimate(2), 0);
  EXPECT_GT(estimate(data.size()), 10 * estimate(2));
  EXPECT_EQ(data[0], 1) << "nothing ran";
  anycclSimInfo_t wrong = ANYCCL_SIM_INFO_INITIALIZER;
  wrong.magic = 0;
  ASSERT_SUCCESS(anycclGroupStart());
  EXPECT_EQ(anycclGroupSimulateEnd(&wrong), anycclInvalidArgument);
  EXPECT_EQ(anycclGroupSimulateEnd(&wrong), anycclInvalidUsage) << "there is no group any more";
  anycclSimInfo_t inner = ANYCCL_SIM_INFO_INITIALIZER;
  ASSERT_EQ(anycclGroupStart(), anycclSuccess);
  ASSERT_EQ(anycclGroupStart(), anycclSuccess);
  EXPECT_EQ(anycclGroupSimulateEnd(&inner), anycclInvalidUsage) << "it is inside another group";
  EXPECT_EQ(anycclGroupEnd(), anycclInvalidUsage) << "which has that error";
  EXPECT_EQ(sums(comms_), std::vector<int>(kRanks, 10));
}

TEST(NcclSurface, devices_have_the_numbers_of_the_program) {
  std::vector<anycclComm_t> comms(3);
  const std::vector<int> devices{5, 0, 2};
  ASSERT_SUCCESS(anycclCommInitAll(comms.data(), 3, devices.data()));
  for (std::size_t r = 0; r < 3; ++r) {
    int device = -1, rank = -1;
    EXPECT_EQ(anycclCommCuDevice(comms[r], &device), anycclSuccess);
    EXPECT_EQ(anycclCommUserRank(comms[r], &rank), anycclSuccess);
    EXPECT_EQ(device, devices[r]);
    EXPECT_EQ(rank, static_cast<int>(r));
  }
  for (anycclComm_t comm : comms) anycclCommDestroy(comm);
  const std::vector<int> twice{1, 0, 1}, negative{0, -1, 2};
  EXPECT_EQ(anycclCommInitAll(comms.data(), 3, twice.data()), anycclInvalidArgument);
  EXPECT_NE(std::string(anycclGetLastError(nullptr)).find("devlist[2] is 1"), std::string::npos);
  EXPECT_EQ(anycclCommInitAll(comms.data(), 3, negative.data()), anycclInvalidArgument);
}

TEST(NcclSurface, several_ids_and_every_field_of_a_config_are_accepted) {
  anycclUniqueId ids[2];
  for (anycclUniqueId& id : ids) ASSERT_SUCCESS(anycclGetUniqueId(&id));
  anycclConfig_t config = ANYCCL_CONFIG_INITIALIZER;
  config.blocking = 1;
  config.commName = "tensor parallel";
  config.netName = "Socket";
  for (int* field : {&config.cgaClusterSize, &config.minCTAs, &config.maxCTAs, &config.splitShare,
                     &config.trafficClass, &config.collnetEnable, &config.CTAPolicy,
                     &config.shrinkShare, &config.nvlsCTAs, &config.nChannelsPerNetPeer,
                     &config.nvlinkCentricSched, &config.graphUsageMode, &config.numRmaCtx}) {
    EXPECT_EQ(*field, ANYCCL_CONFIG_UNDEF_INT);
    *field = 1;
  }
  std::vector<anycclComm_t> comms(2);
  ASSERT_SUCCESS(anycclGroupStart());
  for (int r = 0; r < 2; ++r)
    ASSERT_SUCCESS(
        anycclCommInitRankScalable(&comms[static_cast<std::size_t>(r)], 2, r, 2, ids, &config));
  ASSERT_SUCCESS(anycclGroupEnd());
  for (anycclComm_t comm : comms) EXPECT_EQ(anycclCommDestroy(comm), anycclSuccess);
  EXPECT_EQ(anycclCommInitRankScalable(&comms[0], 2, 0, 0, ids, &config), anycclInvalidArgument);
  EXPECT_EQ(anycclCommInitRankScalable(&comms[0], 2, 0, 1, nullptr, &config),
            anycclInvalidArgument);
}

/// What is logged about communicators, in a file of this process.
TEST(NcclSurface, names_of_communicators_are_logged_and_inherited) {
  const TemporaryFolder folder;
  const Environment env(Environment::Variables{{"ANYCCL_DEBUG", "INFO"},
                                               {"ANYCCL_DEBUG_SUBSYS", "^COLL"},
                                               {"ANYCCL_DEBUG_FILE", folder.path() + "/log.%p"}});
  run_ranks(2, [](Communicator& world) {
    anycclConfig_t config = ANYCCL_CONFIG_INITIALIZER;
    config.commName = "tensor parallel";
    anycclComm_t named = nullptr, child = nullptr;
    ASSERT_SUCCESS(anycclCommSplit(world.handle(), 0, 0, &named, &config));
    ASSERT_SUCCESS(anycclCommSplit(named, 0, 0, &child, nullptr));
    ASSERT_SUCCESS(anycclBarrier(child, nullptr));
    EXPECT_EQ(anycclCommDestroy(child), anycclSuccess);
    EXPECT_EQ(anycclCommDestroy(named), anycclSuccess);
  });
  std::ifstream file(folder.path() + "/log." + std::to_string(::getpid()));
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const std::string line = "communicator tensor parallel of 2 ranks on 1 host";
  const std::size_t first = text.find(line);
  ASSERT_NE(first, std::string::npos) << text;
  EXPECT_NE(text.find(line, first + 1), std::string::npos) << text;
  EXPECT_NE(text.find("info INIT rank 1 of 2: loopback to rank 0"), std::string::npos) << text;
  EXPECT_EQ(text.find("info COLL"), std::string::npos) << text;
}

}  // namespace
}  // namespace anyccl::test
