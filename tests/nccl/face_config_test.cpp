// Configurations as each version of NCCL has them.

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "anyccl/anyccl.h"
#include "face_ranks.hpp"

namespace anyccl::test {
namespace {

struct Version {
  unsigned int number;
  std::size_t bytes;
};
const std::vector<Version> kVersions = {{22105, 48}, {22605, 48}, {22707, 72}, {22809, 80},
                                        {22907, 88}, {23007, 96}, {23200, 128}};

/// The bytes of a configuration of that version, and no more, as a program has them.
class Config {
 public:
  explicit Config(const Version& version) : bytes_(version.bytes) {
    const ncclConfig_t known = NCCL_CONFIG_INITIALIZER;
    std::memcpy(bytes_.data(), &known, std::min(sizeof known, bytes_.size()));
    set(offsetof(ncclConfig_t, size), version.bytes);
    set(offsetof(ncclConfig_t, version), version.number);
  }
  template <typename T>
  void set(std::size_t offset, T value) {
    ASSERT_LE(offset + sizeof value, bytes_.size());
    std::memcpy(bytes_.data() + offset, &value, sizeof value);
  }
  ncclConfig_t* get() { return reinterpret_cast<ncclConfig_t*>(bytes_.data()); }

 private:
  std::vector<std::byte> bytes_;
};

ncclResult_t create(ncclConfig_t* config, ncclComm_t* comm) {
  ncclUniqueId id;
  EXPECT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  return ncclCommInitRankConfig(comm, 1, id, 0, config);
}

TEST(FaceConfig, of_each_version_creates_a_communicator) {
  for (const Version& version : kVersions) {
    SCOPED_TRACE(version.number);
    ncclComm_t comm = nullptr;
    ASSERT_EQ(create(Config(version).get(), &comm), ncclSuccess) << ncclGetLastError(nullptr);
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
    int said = 0;
    EXPECT_EQ(ncclGetVersion(&said), ncclSuccess);
    EXPECT_EQ(said, static_cast<int>(version.number));
  }
}

TEST(FaceConfig, of_each_version_says_whether_creation_blocks) {
  for (const Version& version : kVersions) {
    SCOPED_TRACE(version.number);
    Config config(version);
    config.set(offsetof(ncclConfig_t, blocking), 0);
    ncclComm_t comm = nullptr;
    ASSERT_EQ(create(config.get(), &comm), ncclInProgress);
    ncclResult_t state = ncclInProgress;
    while (state == ncclInProgress) ASSERT_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess);
    EXPECT_EQ(state, ncclSuccess);
    EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
  }
}

TEST(FaceConfig, from_version_2_27_on_has_the_name_of_the_communicator) {
  for (const Version& version : kVersions) {
    if (version.bytes < 72) continue;
    SCOPED_TRACE(version.number);
    Config config(version);
    config.set(offsetof(ncclConfig_t, commName), "data_parallel");
    ncclComm_t comm = nullptr;
    ASSERT_EQ(create(config.get(), &comm), ncclSuccess) << ncclGetLastError(nullptr);
    const char* said = "";
    EXPECT_EQ(anycclCommMetrics(reinterpret_cast<anycclComm_t>(comm), &said), anycclSuccess);
    EXPECT_NE(std::string(said).find("data_parallel"), std::string::npos) << said;
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  }
}

TEST(FaceConfig, that_is_not_initialized_is_refused) {
  Config config({22907, 88});
  config.set(offsetof(ncclConfig_t, magic), 0U);
  ncclComm_t comm = nullptr;
  expect_error(create(config.get(), &comm), ncclInvalidArgument, "NCCL_CONFIG_INITIALIZER");
  EXPECT_EQ(comm, nullptr);
}

TEST(FaceConfig, of_a_size_that_no_version_has_is_refused) {
  for (const std::size_t bytes : {24UL, 40UL, 52UL, 87UL}) {
    Config config({22907, 96});
    config.set(offsetof(ncclConfig_t, size), bytes);
    ncclComm_t comm = nullptr;
    expect_error(create(config.get(), &comm), ncclInvalidArgument,
                 "config has " + std::to_string(bytes) + " bytes");
  }
}

TEST(FaceConfig, is_read_by_splits) {
  std::array<ncclComm_t, 2> comms{}, halves{};
  ASSERT_EQ(ncclCommInitAll(comms.data(), 2, nullptr), ncclSuccess);
  Config wrong({22907, 88});
  wrong.set(offsetof(ncclConfig_t, magic), 1U);
  expect_error(ncclCommSplit(comms[0], 0, 0, halves.data(), wrong.get()), ncclInvalidArgument,
               "NCCL_CONFIG_INITIALIZER", comms[0]);
  Config right({22707, 72});
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  for (std::size_t r = 0; r < 2; ++r)
    EXPECT_EQ(ncclCommSplit(comms[r], 0, 0, &halves[r], right.get()), ncclSuccess);
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess) << ncclGetLastError(nullptr);
  for (const ncclComm_t comm : {halves[0], halves[1], comms[0], comms[1]})
    EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
}

}  // namespace
}  // namespace anyccl::test
