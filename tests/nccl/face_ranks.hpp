#pragma once
// Two ranks in one thread, by NCCL's interface.

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "nccl.h"

namespace anyccl::test {

/// The communicators of ranks 0 and 1, of the host's memory.
class FaceRanks : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(ncclCommInitAll(comms_.data(), 2, nullptr), ncclSuccess); }
  /// Without failed communicators, whose results are not success.
  void TearDown() override {
    for (const ncclComm_t comm : comms_) ncclCommAbort(comm);
  }

  std::array<ncclComm_t, 2> comms_{};
};

/// The result, and that the last error has the words.
inline void expect_error(ncclResult_t result, ncclResult_t expected, const std::string& words,
                         ncclComm_t comm = nullptr) {
  EXPECT_EQ(result, expected) << ncclGetLastError(comm);
  EXPECT_NE(std::string(ncclGetLastError(comm)).find(words), std::string::npos)
      << ncclGetLastError(comm);
}

}  // namespace anyccl::test
