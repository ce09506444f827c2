// Operators and types of NCCL, and those that only anyccl has.

#include "face_ranks.hpp"

namespace anyccl::test {
namespace {

using FaceOperators = FaceRanks;
using FaceTypes = FaceRanks;

TEST_F(FaceOperators, that_only_anyccl_has_are_refused) {
  int x = 1;
  for (int op = ncclNumOps; op < 20; ++op) {
    const ncclResult_t result =
        ncclAllReduce(&x, &x, 1, ncclInt, static_cast<ncclRedOp_t>(op), comms_[0], nullptr);
    expect_error(result, ncclInvalidArgument, std::to_string(op), comms_[0]);
  }
}

TEST_F(FaceOperators, that_are_refused_fail_their_group) {
  int x[2] = {1, 2};
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  for (std::size_t r = 0; r < 2; ++r)
    ncclAllReduce(&x[r], &x[r], 1, ncclInt, r == 0 ? ncclNumOps : ncclSum, comms_[r], nullptr);
  expect_error(ncclGroupEnd(), ncclInvalidArgument, "operator 5 was not created");
  EXPECT_EQ(x[0], 1);
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);  // the next one knows nothing of it
  for (std::size_t r = 0; r < 2; ++r)
    EXPECT_EQ(ncclAllReduce(&x[r], &x[r], 1, ncclInt, ncclSum, comms_[r], nullptr), ncclSuccess);
  EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
  EXPECT_EQ(x[0], 3);
}

TEST_F(FaceOperators, of_pre_multiplied_sums_are_created_for_their_communicator) {
  std::array<ncclRedOp_t, 2> ops{};
  std::array<float, 2> factors = {2, 10}, x = {1, 3};
  for (std::size_t r = 0; r < 2; ++r)
    ASSERT_EQ(ncclRedOpCreatePreMulSum(&ops[r], &factors[r], ncclFloat, ncclScalarHostImmediate,
                                       comms_[r]),
              ncclSuccess);
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  for (std::size_t r = 0; r < 2; ++r)
    EXPECT_EQ(ncclAllReduce(&x[r], &x[r], 1, ncclFloat, ops[r], comms_[r], nullptr), ncclSuccess);
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess) << ncclGetLastError(nullptr);
  EXPECT_EQ(x[0], 32);
  EXPECT_EQ(x[1], 32);
  for (std::size_t r = 0; r < 2; ++r) EXPECT_EQ(ncclRedOpDestroy(ops[r], comms_[r]), ncclSuccess);
  EXPECT_EQ(ncclAllReduce(x.data(), x.data(), 1, ncclFloat, ops[0], comms_[0], nullptr),
            ncclInvalidArgument);
}

TEST_F(FaceOperators, of_the_library_cannot_be_destroyed) {
  EXPECT_EQ(ncclRedOpDestroy(ncclSum, comms_[0]), ncclInvalidArgument);
  expect_error(ncclRedOpDestroy(ncclNumOps, comms_[0]), ncclInvalidArgument, "was not created");
}

TEST_F(FaceTypes, that_only_anyccl_has_are_refused) {
  short x = 1;
  const auto int16 = static_cast<ncclDataType_t>(12);
  const std::string words = "datatype 12 does not exist";
  expect_error(ncclAllReduce(&x, &x, 1, int16, ncclSum, comms_[0], nullptr), ncclInvalidArgument,
               words);
  expect_error(ncclBroadcast(&x, &x, 1, int16, 0, comms_[0], nullptr), ncclInvalidArgument, words);
  expect_error(ncclSend(&x, 1, int16, 1, comms_[0], nullptr), ncclInvalidArgument, words);
  expect_error(ncclRecv(&x, 1, int16, 1, comms_[0], nullptr), ncclInvalidArgument, words);
}

TEST_F(FaceTypes, are_sent_as_they_are) {
  for (int type = 0; type < ncclNumTypes; ++type) {
    std::array<double, 2> x = {3.25, 0};
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(ncclSend(x.data(), 1, static_cast<ncclDataType_t>(type), 1, comms_[0], nullptr),
              ncclSuccess);
    EXPECT_EQ(ncclRecv(&x[1], 1, static_cast<ncclDataType_t>(type), 0, comms_[1], nullptr),
              ncclSuccess);
    EXPECT_EQ(ncclGroupEnd(), ncclSuccess) << type;
    EXPECT_EQ(x[1] == 3.25, type == ncclInt64 || type == ncclUint64 || type == ncclFloat64);
  }
}

}  // namespace
}  // namespace anyccl::test
