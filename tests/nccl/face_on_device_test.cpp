// A program for NCCL with its vectors on devices, on libnccl.so.2 and the simulated driver.

#include "face_on_device.hpp"

namespace anyccl::test {
namespace {

TEST_F(FaceOnDevice, an_all_reduce_of_each_stream_and_of_the_default_one_is_right) {
  for (const float times : {1.0F, 2.0F}) {
    ASSERT_NCCL(ncclGroupStart());
    for (int r = 0; r < 2; ++r)
      ASSERT_NCCL(ncclAllReduce(vectors_[r], vectors_[r], kCount, ncclFloat, ncclSum, comms_[r],
                                times == 1.0F ? stream(r) : nullptr));
    ASSERT_NCCL(ncclGroupEnd());
    for (int r = 0; r < 2; ++r) {
      const std::vector<float> x = vector_of(r);
      for (std::size_t i = 0; i < kCount; ++i)
        ASSERT_EQ(x[i], times * (1000.0F + 2.0F * static_cast<float>(i))) << r << " " << i;
    }
  }
}

TEST_F(FaceOnDevice, a_message_goes_from_device_to_device) {
  ASSERT_NCCL(ncclGroupStart());
  ASSERT_NCCL(ncclSend(vectors_[0], kCount, ncclFloat, 1, comms_[0], stream(0)));
  ASSERT_NCCL(ncclRecv(vectors_[1], kCount, ncclFloat, 0, comms_[1], stream(1)));
  ASSERT_NCCL(ncclGroupEnd());
  EXPECT_EQ(vector_of(1), vector_of(0));
}

TEST_F(FaceOnDevice, a_scalar_and_a_window_on_the_device_are_refused) {
  ncclRedOp_t op;
  EXPECT_EQ(ncclRedOpCreatePreMulSum(&op, vectors_[0], ncclFloat, ncclScalarDevice, comms_[0]),
            ncclInvalidUsage);
  ncclWindow_t windows[2] = {};
  ASSERT_NCCL(ncclGroupStart());
  for (int r = 0; r < 2; ++r)
    ASSERT_NCCL(ncclCommWindowRegister(comms_[r], vectors_[r], 4000, &windows[r], 0));
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
}

TEST_F(FaceOnDevice, a_stream_is_refused_by_a_communicator_without_a_device) {
  float x = 1;
  EXPECT_EQ(ncclAllReduce(&x, &x, 1, ncclFloat, ncclSum, of_host_, stream(0)), ncclInvalidArgument);
  EXPECT_EQ(ncclAllReduce(&x, &x, 1, ncclFloat, ncclSum, of_host_, nullptr), ncclSuccess);
}

}  // namespace
}  // namespace anyccl::test
