// Operators that are destroyed while calls have them.

#include <array>
#include <functional>

#include "support/ranks.hpp"

namespace anyccl::test {
namespace {

/// NCCL and MPI: as soon as the function that took it has returned.
class DestroyedOperator : public ::testing::Test {
 protected:
  void run(const std::function<void(Communicator&)>& body) {
    for (const char* transport : {"loopback", "tcp"}) {
      SCOPED_TRACE(transport);
      const Environment env(Environment::Variables{{"ANYCCL_TRANSPORT", transport}});
      run_ranks(2, body);
    }
  }
  static anycclRedOp_t times(Communicator& comm, float factor) {
    anycclRedOp_t op{};
    EXPECT_EQ(anycclRedOpCreatePreMulSum(&op, &factor, anycclFloat32, anycclScalarHostImmediate,
                                         comm.handle()),
              anycclSuccess);
    return op;
  }
  static void destroy(anycclRedOp_t op, Communicator& comm) {
    EXPECT_EQ(anycclRedOpDestroy(op, comm.handle()), anycclSuccess);
  }
  static anycclCall_t call_of(const float* x, float* y, anycclRedOp_t op) {
    anycclCall_t call{};
    call.size = sizeof call;
    call.collective = anycclCollAllReduce;
    call.sendbuff = x;
    call.recvbuff = y;
    call.count = 1;
    call.datatype = anycclFloat32;
    call.op = op;
    return call;
  }
};

TEST_F(DestroyedOperator, is_that_of_calls_of_a_group) {
  run([](Communicator& comm) {
    anycclStream_t streams[] = {nullptr, nullptr};
    ASSERT_EQ(anycclStreamCreate(&streams[1]), anycclSuccess);
    for (anycclStream_t stream : streams) {
      const float x = 1;
      std::array<float, 20> y{};
      ASSERT_EQ(anycclGroupStart(), anycclSuccess);
      for (std::size_t i = 0; i < y.size(); ++i) {
        const anycclRedOp_t op = times(comm, static_cast<float>(i));
        anycclAllReduce(&x, &y[i], 1, anycclFloat32, op, comm.handle(), stream);
        destroy(op, comm);
      }
      const anycclRedOp_t other = times(comm, 1000);
      ASSERT_EQ(anycclGroupEnd(), anycclSuccess) << comm.failure().message();
      destroy(other, comm);
      if (stream != nullptr) {
        EXPECT_EQ(anycclStreamSynchronize(stream), anycclSuccess);
      }
      for (std::size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], 2 * static_cast<float>(i)) << i;
    }
    anycclStreamDestroy(streams[1]);
  });
}

TEST_F(DestroyedOperator, is_that_of_prepared_and_issued_calls) {
  run([](Communicator& comm) {
    const float x = 1;
    float y[3] = {};
    anycclPrepared_t prepared[2] = {};
    anycclWork_t works[2] = {}, issued = nullptr;
    for (int i = 0; i < 2; ++i) {
      const anycclRedOp_t op = times(comm, static_cast<float>(3 + i));
      const anycclCall_t call = call_of(&x, &y[i], op);
      ASSERT_EQ(anycclPrepare(&call, comm.handle(), &prepared[i]), anycclSuccess);
      destroy(op, comm);
    }
    for (int round = 0; round < 3; ++round) {
      const anycclRedOp_t op = times(comm, 50);  // of an operator that would have a free number
      const anycclCall_t call = call_of(&x, &y[2], op);
      ASSERT_EQ(anycclIssue(&call, comm.handle(), &issued), anycclSuccess);
      destroy(op, comm);
      ASSERT_EQ(anycclStartAll(prepared, 2, works), anycclSuccess) << comm.failure().message();
      for (anycclWork_t work : {issued, works[0], works[1]}) {
        EXPECT_EQ(anycclWorkWait(work), anycclSuccess);
        anycclWorkFree(work);
      }
      EXPECT_EQ(y[0], 6);
      EXPECT_EQ(y[1], 8);
      EXPECT_EQ(y[2], 100);
    }
    for (anycclPrepared_t one : prepared) anycclPreparedFree(one);
    for (int i = 0; i < 127; ++i) times(comm, 1);  // all numbers are free again
  });
}

TEST_F(DestroyedOperator, is_not_another_one) {
  run([](Communicator& comm) {
    const anycclRedOp_t gone = times(comm, 2);
    destroy(gone, comm);
    const anycclRedOp_t other = times(comm, 50);
    float x = 1;
    EXPECT_EQ(anycclAllReduce(&x, &x, 1, anycclFloat32, gone, comm.handle(), nullptr),
              anycclInvalidArgument);
    EXPECT_EQ(anycclRedOpDestroy(gone, comm.handle()), anycclInvalidArgument);
    EXPECT_EQ(anycclAllReduce(&x, &x, 1, anycclFloat32, other, comm.handle(), nullptr),
              anycclSuccess);
    EXPECT_EQ(x, 100);
  });
}

TEST_F(DestroyedOperator, is_none_of_another_communicator) {
  run([](Communicator& comm) {
    auto second = comm.split(0, index(comm.rank()));
    ASSERT_TRUE(second.ok());
    const anycclRedOp_t op = times(*second, 2);
    destroy(times(comm, 1), comm);
    times(comm, 3);
    float x = 1;
    EXPECT_EQ(anycclAllReduce(&x, &x, 1, anycclFloat32, op, comm.handle(), nullptr),
              anycclInvalidArgument);
  });
}

}  // namespace
}  // namespace anyccl::test
