// Mistakes get an immediate error that names the argument and its value.

#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <limits>

#include "support/ranks.hpp"
#include "support/sealed_file.hpp"

namespace anyccl::test {
namespace {

/// The last error of this thread contains all of these words.
void expect_words(anycclResult_t got, anycclResult_t want, const std::vector<std::string>& words) {
  EXPECT_EQ(got, want) << anycclGetLastError(nullptr);
  const std::string text = anycclGetLastError(nullptr);
  for (const std::string& w : words)
    EXPECT_NE(text.find(w), std::string::npos) << "'" << w << "' is not in: " << text;
}

class BadInput : public testing::Test {
 protected:
  void SetUp() override {
    auto made = Communicator::init_all(1);
    ASSERT_TRUE(made.ok());
    comms_ = *std::move(made);
    comm_ = comms_[0].handle();
  }
  std::vector<Communicator> comms_;
  anycclComm_t comm_ = nullptr;
  std::vector<float> x_ = std::vector<float>(64);
};

TEST_F(BadInput, null_buffers) {
  expect_words(anycclAllReduce(nullptr, x_.data(), 3, anycclFloat32, anycclSum, comm_, nullptr),
               anycclInvalidArgument, {"sendbuff", "NULL", "3"});
  expect_words(anycclAllReduce(x_.data(), nullptr, 3, anycclFloat32, anycclSum, comm_, nullptr),
               anycclInvalidArgument, {"recvbuff", "NULL"});
  EXPECT_EQ(anycclAllReduce(nullptr, nullptr, 0, anycclFloat32, anycclSum, comm_, nullptr),
            anycclSuccess);
}
TEST_F(BadInput, null_handles) {
  expect_words(anycclAllReduce(x_.data(), x_.data(), 3, anycclFloat32, anycclSum, nullptr, nullptr),
               anycclInvalidArgument, {"comm"});
  expect_words(anycclCommCount(comm_, nullptr), anycclInvalidArgument, {"count", "NULL"});
  expect_words(anycclGetUniqueId(nullptr), anycclInvalidArgument, {"id", "NULL"});
  expect_words(anycclWorkWait(nullptr), anycclInvalidArgument, {"work", "NULL"});
  EXPECT_EQ(anycclCommDestroy(nullptr), anycclSuccess);
  EXPECT_EQ(anycclCommAbort(nullptr), anycclSuccess);
}
TEST_F(BadInput, negative_and_overflowing_counts) {
  const auto negative = static_cast<std::size_t>(-1);
  expect_words(
      anycclAllReduce(x_.data(), x_.data(), negative, anycclFloat32, anycclSum, comm_, nullptr),
      anycclInvalidArgument, {"count", "18446744073709551615"});
  expect_words(anycclBroadcast(x_.data(), x_.data(), std::numeric_limits<std::size_t>::max() / 4,
                               anycclInt64, 0, comm_, nullptr),
               anycclInvalidArgument, {"count", "overflows"});
}
TEST_F(BadInput, types_and_operators) {
  expect_words(anycclAllReduce(x_.data(), x_.data(), 3, anycclNumTypes, anycclSum, comm_, nullptr),
               anycclInvalidArgument, {"datatype", "17"});
  expect_words(
      anycclAllReduce(x_.data(), x_.data(), 1, anycclComplexFloat, anycclMax, comm_, nullptr),
      anycclUnsupported, {"max", "complex64", "sum, prod"});
  expect_words(anycclAllReduce(x_.data(), x_.data(), 3, anycclFloat32, anycclBand, comm_, nullptr),
               anycclUnsupported, {"band", "f32"});
  expect_words(
      anycclAllReduce(x_.data(), x_.data(), 3, anycclFloat32, anycclNumOps, comm_, nullptr),
      anycclInvalidArgument, {"op", "11"});
}
TEST_F(BadInput, roots_and_peers) {
  expect_words(anycclBroadcast(x_.data(), x_.data(), 3, anycclFloat32, 1, comm_, nullptr),
               anycclInvalidArgument, {"root", "1"});
  expect_words(anycclBroadcast(x_.data(), x_.data(), 3, anycclFloat32, -2, comm_, nullptr),
               anycclInvalidArgument, {"root", "-2"});
  expect_words(anycclSend(x_.data(), 3, anycclFloat32, 7, comm_, nullptr), anycclInvalidArgument,
               {"peer", "7"});
}
TEST_F(BadInput, overlapping_buffers) {
  expect_words(
      anycclAllReduce(x_.data(), x_.data() + 1, 8, anycclFloat32, anycclSum, comm_, nullptr),
      anycclInvalidArgument, {"overlap", "32 bytes"});
  expect_words(
      anycclReduceScatter(x_.data(), x_.data() + 1, 8, anycclFloat32, anycclSum, comm_, nullptr),
      anycclInvalidArgument, {"overlap", "in place"});
  expect_words(anycclAllGather(x_.data(), x_.data() + 7, 8, anycclFloat32, comm_, nullptr),
               anycclInvalidArgument, {"overlap", "in place"});
}
TEST_F(BadInput, overlapping_buffers_of_a_call_that_was_right_before) {
  const auto call = [&](std::size_t distance) {
    return anycclAllReduce(x_.data(), x_.data() + distance, 8, anycclFloat32, anycclSum, comm_,
                           nullptr);
  };
  ASSERT_EQ(call(8), anycclSuccess);
  expect_words(call(1), anycclInvalidArgument, {"overlap", "32 bytes"});
  EXPECT_EQ(call(8), anycclSuccess);
}
TEST_F(BadInput, blocks_that_do_not_fit) {
  auto two = Communicator::init_all(2);
  ASSERT_TRUE(two.ok());
  const auto status = (*two)[0].all_gather(view(x_), view(x_)).status();
  EXPECT_EQ(status.code(), Code::invalid_argument);
  EXPECT_NE(status.message().find("64 f32 and 64 f32"), std::string::npos) << status.message();
  std::vector<float> odd(3);
  EXPECT_EQ((*two)[0].all_to_all(view(odd), view(odd)).status().code(), Code::invalid_argument);
}
TEST_F(BadInput, views_of_two_types) {
  auto alone = Communicator::init_all(1);
  ASSERT_TRUE(alone.ok());
  std::vector<std::int64_t> numbers(x_.size());
  const std::string said(
      (*alone)[0].broadcast(view(x_), view(numbers), Rank{0}).status().message());
  EXPECT_NE(said.find("64 f32 and the result 64 i64"), std::string::npos) << said;
}
TEST_F(BadInput, tables_of_all_to_all) {
  const std::size_t one[] = {1}, huge[] = {static_cast<std::size_t>(-3)};
  expect_words(anycclAllToAllv(x_.data(), nullptr, one, x_.data() + 8, one, one, anycclFloat32,
                               comm_, nullptr),
               anycclInvalidArgument, {"sendcounts", "NULL"});
  expect_words(
      anycclAllToAllv(x_.data(), huge, one, x_.data() + 8, one, one, anycclFloat32, comm_, nullptr),
      anycclInvalidArgument, {"sendcounts[0]"});
  expect_words(
      anycclAllToAllv(x_.data(), one, one, x_.data(), one, one, anycclFloat32, comm_, nullptr),
      anycclInvalidArgument, {"in place"});
}
TEST_F(BadInput, tables_of_the_other_v_forms) {
  const std::size_t one[] = {1}, two[] = {2}, zero[] = {0};
  float* const x = x_.data();
  expect_words(anycclAllGatherv(x, 1, x + 8, nullptr, one, anycclFloat32, comm_, nullptr),
               anycclInvalidArgument, {"recvcounts", "NULL"});
  expect_words(anycclGatherv(x, 1, x + 8, one, nullptr, anycclFloat32, 0, comm_, nullptr),
               anycclInvalidArgument, {"rdispls", "NULL"});
  expect_words(anycclAllGatherv(x, 1, x + 8, two, one, anycclFloat32, comm_, nullptr),
               anycclInvalidArgument, {"sendcount is 1", "recvcounts[0] is 2"});
  expect_words(anycclScatterv(x, two, zero, x + 1, 2, anycclFloat32, 0, comm_, nullptr),
               anycclInvalidArgument, {"recvbuff overlaps block 0 of sendbuff"});
  expect_words(anycclScatterv(nullptr, two, zero, x + 1, 2, anycclFloat32, 0, comm_, nullptr),
               anycclInvalidArgument, {"sendbuff is NULL", "sendcounts[0] is 2"});
  expect_words(
      anycclReduceScatterv(x, one, zero, nullptr, 1, anycclFloat32, anycclSum, comm_, nullptr),
      anycclInvalidArgument, {"recvbuff is NULL"});
  EXPECT_EQ(anycclAllGatherv(x + 1, 1, x, one, one, anycclFloat32, comm_, nullptr), anycclSuccess)
      << "in place";
}
TEST_F(BadInput, received_pieces_that_overlap) {
  auto two = Communicator::init_all(2);
  ASSERT_TRUE(two.ok());
  const std::vector<std::size_t> counts = {4, 4}, displs = {3, 0};
  const auto status = (*two)[0]
                          .all_gather_v(View{x_.data(), 4, DType::f32},
                                        View{x_.data() + 8, 8, DType::f32}, {counts, displs})
                          .status();
  EXPECT_EQ(status.code(), Code::invalid_argument);
  EXPECT_NE(status.message().find("blocks 1 and 0 of recvbuff overlap"), std::string::npos)
      << status.message();
}
TEST_F(BadInput, calls_as_data) {
  anycclWork_t work = nullptr;
  anycclCall_t call{};
  expect_words(anycclIssue(&call, comm_, &work), anycclInvalidArgument,
               {"call.size", "sizeof(anycclCall_t)"});
  call.size = sizeof call;
  call.collective = anycclNumCollectives;
  expect_words(anycclIssue(&call, comm_, &work), anycclInvalidArgument,
               {"call.collective", std::to_string(anycclNumCollectives)});
}
TEST_F(BadInput, memory_that_is_not_ours) {
  expect_words(anycclMemFree(x_.data()), anycclInvalidArgument,
               {"anycclMemFree", "anycclMemAlloc did not return"});
  EXPECT_EQ(anycclMemFree(nullptr), anycclSuccess);
}
TEST_F(BadInput, memory_that_peers_must_not_map) {
  const auto refuses = [](const SealedFile& file, std::size_t bytes, std::size_t offset,
                          const std::string& word) {
    expect_words(anycclMemRegister(file.at, bytes, file.fd, offset), anycclInvalidArgument, {word});
  };
  refuses(SealedFile(8192, F_SEAL_FUTURE_WRITE), 8192, 0, "F_SEAL_SHRINK");
  refuses(SealedFile(8192, F_SEAL_SHRINK), 8192, 0, "F_SEAL_FUTURE_WRITE");
  const SealedFile file(8192), other(8192);
  refuses(file, 8193, 0, "8192 bytes instead of 8193");
  refuses(file, 4096, 4096, "not a MAP_SHARED mapping");
  refuses(file, 0, 0, "make no sense");
  expect_words(anycclMemRegister(other.at, 8192, file.fd, 0), anycclInvalidArgument,
               {"not a MAP_SHARED mapping"});
  expect_words(anycclMemRegister(nullptr, 8192, file.fd, 0), anycclInvalidArgument, {"ptr"});
  expect_words(anycclMemRegister(file.at, 8192, -1, 0), anycclSystemError, {"descriptor -1"});
  ASSERT_EQ(anycclMemRegister(file.at, 8192, file.fd, 0), anycclSuccess);
  expect_words(anycclMemRegister(file.at + 4096, 4096, file.fd, 4096), anycclInvalidArgument,
               {"registered already"});
  EXPECT_EQ(anycclMemDeregister(file.at), anycclSuccess);
  expect_words(anycclMemDeregister(file.at), anycclInvalidArgument, {"was not registered"});
}
TEST_F(BadInput, group_end_without_start) {
  expect_words(anycclGroupEnd(), anycclInvalidUsage, {"anycclGroupStart"});
}

TEST(BadPlace, ranks_and_sizes) {
  anycclUniqueId id{};
  anycclComm_t comm = nullptr;
  expect_words(anycclCommInitRank(&comm, 0, id, 0), anycclInvalidArgument, {"nranks", "0"});
  expect_words(anycclCommInitRank(&comm, 2, id, 2), anycclInvalidArgument, {"rank", "2"});
  expect_words(anycclCommInitRank(&comm, 2, id, -1), anycclInvalidArgument, {"rank", "-1"});
  expect_words(anycclCommInitRank(&comm, 2, id, 0), anycclInvalidArgument, {"unique id"});
  const int devices[] = {-1};
  expect_words(anycclCommInitAll(&comm, 1, devices), anycclInvalidArgument, {"devlist[0] is -1"});
}

struct BadVariable {
  const char *name, *value, *word;
};
class BadEnvironment : public testing::TestWithParam<BadVariable> {};
TEST_P(BadEnvironment, is_named_with_its_value) {
  const auto [name, value, word] = GetParam();
  const Environment env(Environment::Variables{{name, value}});
  anycclComm_t comm = nullptr;
  expect_words(anycclCommInitAll(&comm, 1, nullptr), anycclInvalidArgument, {name, word});
}
INSTANTIATE_TEST_SUITE_P(Variables, BadEnvironment,
                         testing::Values(BadVariable{"ANYCCL_ALGO", "rnig", "rnig"},
                                         BadVariable{"ANYCCL_PROTO", "fast", "fast"},
                                         BadVariable{"ANYCCL_CHUNK_SIZE", "1K", "not in 4096.."},
                                         BadVariable{"ANYCCL_BUFFSIZE", "much", "much"},
                                         BadVariable{"ANYCCL_TRANSPORT", "rdma", "rdma"},
                                         BadVariable{"ANYCCL_PORT", "99999", "99999"},
                                         BadVariable{"ANYCCL_TCP_ACK_TIMEOUT", "0", "1 to 600"},
                                         BadVariable{"ANYCCL_CHECKSUM", "yes", "yes"},
                                         BadVariable{"ANYCCL_TLS", "hosts", "from 0 to 1"},
                                         BadVariable{"ANYCCL_CHAOS", "drop=0.1,lag=1", "'lag'"},
                                         BadVariable{"ANYCCL_SECRET", "abc", "32 hex digits"},
                                         BadVariable{"ANYCCL_TIMEOUT", "soon", "soon"},
                                         BadVariable{"ANYCCL_WAIT", "patience", "patience"},
                                         BadVariable{"ANYCCL_FUSION", "maybe", "maybe"},
                                         BadVariable{"ANYCCL_DEBUG", "loud", "loud"},
                                         BadVariable{"ANYCCL_DEBUG_SUBSYS", "INIT,ALLES", "ALLES"}),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(BadPortRange, is_named_with_its_value) {
  for (const char* value : {"40000", "40000-", "-40000", "40001-40000", "0-9", "1-65536", "1-2-3",
                            "a-b", " 40000-40001"}) {
    const Environment env(Environment::Variables{{"ANYCCL_PORT_RANGE", value}});
    anycclComm_t comm = nullptr;
    expect_words(anycclCommInitAll(&comm, 1, nullptr), anycclInvalidArgument,
                 {std::string("ANYCCL_PORT_RANGE=") + value, "40000-40999"});
  }
}

TEST(BadEnvironmentStart, missing_variable_is_named_with_the_remedy) {
  anycclComm_t comm = nullptr;
  expect_words(anycclCommInitEnv(&comm), anycclInvalidUsage, {"RANK", "anyccl run"});
}

TEST(BadJoin, missing_ranks_are_named) {
  const Environment env(Environment::Variables{{"ANYCCL_TIMEOUT", "0.5"}});
  anycclUniqueId id;
  ASSERT_EQ(anycclGetUniqueId(&id), anycclSuccess);
  anycclComm_t comm = nullptr;
  expect_words(anycclCommInitRank(&comm, 3, id, 1), anycclTimeout, {"1 of 3", "0, 2"});
}

TEST(BadUse, after_fork_is_refused) {
  run_ranks(1, [](Communicator& comm) {
    EXPECT_EXIT(
        {
          float x = 0;
          const auto code =
              anycclAllReduce(&x, &x, 1, anycclFloat32, anycclSum, comm.handle(), nullptr);
          std::_Exit(code == anycclInvalidUsage &&
                             std::strstr(anycclGetLastError(nullptr), "fork") != nullptr
                         ? 0
                         : 1);
        },
        testing::ExitedWithCode(0), "");
  });
}

/// In the child of a rank that has an operation open: every call says why, none waits or talks to
/// the parent's peers.
int child_of_a_busy_rank(anycclComm_t comm, anycclWork_t work) {
  ::alarm(10);
  float x = 0;
  int done = 0;
  expect_words(anycclWorkTest(work, &done), anycclInvalidUsage, {"fork"});
  expect_words(anycclWorkWait(work), anycclInvalidUsage, {"fork"});
  expect_words(anycclSend(&x, 1, anycclFloat32, 1, comm, nullptr), anycclInvalidUsage, {"fork"});
  EXPECT_EQ(anycclCommDestroy(comm), anycclSuccess);
  return testing::Test::HasFailure() ? 1 : 0;
}

TEST(BadUse, after_fork_with_an_operation_open_waits_for_nobody) {
  expect_all_passed(run_processes(2, [](Communicator& comm) {
    float x = 1, y = 0;
    const View token{&y, 1, DType::f32};
    if (comm.rank() == Rank{1}) {
      ASSERT_OK(wait(comm.recv(token, Rank{0})));  // the child has ended
      ASSERT_OK(wait(comm.all_reduce({&x, 1, DType::f32}, {&x, 1, DType::f32}, ReduceOp::sum)));
      EXPECT_EQ(x, 2.0F);
      return;
    }
    anycclCall_t call{};
    call.size = sizeof call;
    call.collective = anycclCollAllReduce;
    call.sendbuff = call.recvbuff = &x;
    call.count = 1;
    call.datatype = anycclFloat32;
    anycclWork_t work = nullptr;
    ASSERT_EQ(anycclIssue(&call, comm.handle(), &work), anycclSuccess);
    const pid_t child = ::fork();
    if (child == 0) std::_Exit(child_of_a_busy_rank(comm.handle(), work));
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    ASSERT_OK(wait(comm.send(token, Rank{1})));
    EXPECT_EQ(anycclWorkWait(work), anycclSuccess);
    EXPECT_EQ(x, 2.0F);
    EXPECT_EQ(anycclWorkFree(work), anycclSuccess);
  }));
}

}  // namespace
}  // namespace anyccl::test
