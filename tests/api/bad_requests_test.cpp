// Mistakes with probes, synchronous sends, prepared calls and several works.

#include "support/ranks.hpp"

namespace anyccl::test {
namespace {

/// The last error of this thread contains all of these words.
void expect_words(anycclResult_t got, anycclResult_t want, const std::vector<std::string>& words) {
  EXPECT_EQ(got, want) << anycclGetLastError(nullptr);
  const std::string text = anycclGetLastError(nullptr);
  for (const std::string& w : words)
    EXPECT_NE(text.find(w), std::string::npos) << "'" << w << "' is not in: " << text;
}

class BadRequest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = Communicator::init_all(1);
    ASSERT_TRUE(made.ok());
    comms_ = *std::move(made);
    comm_ = comms_[0].handle();
    call_.size = sizeof call_;
    call_.collective = anycclCollSend;
    call_.sendbuff = x_.data();
    call_.count = x_.size();
    call_.datatype = anycclFloat32;
  }
  std::vector<Communicator> comms_;
  anycclComm_t comm_ = nullptr;
  anycclMessage_t message_{};
  anycclCall_t call_{};
  std::vector<float> x_ = std::vector<float>(64);
};

TEST_F(BadRequest, sources_and_tags_of_probes) {
  int flag = 0;
  for (const int source : {1, -2}) {
    const std::string said = std::to_string(source);
    expect_words(anycclProbe(source, 0, comm_, &message_), anycclInvalidArgument,
                 {"source " + said, "communicator of 1"});
    expect_words(anycclIprobe(source, 0, comm_, &flag, &message_), anycclInvalidArgument,
                 {"source " + said});
  }
  for (const int tag : {-1, ANYCCL_LAYER_TAG(1 << 20)}) {
    const std::string said = std::to_string(tag);
    expect_words(anycclProbeFor(0, tag, comm_, 1, &message_), anycclInvalidArgument,
                 {"tag " + said, "2147483647"});
    expect_words(anycclIprobe(0, tag, comm_, &flag, &message_), anycclInvalidArgument,
                 {"tag " + said});
  }
}
TEST_F(BadRequest, null_pointers_of_probes) {
  int flag = 0;
  expect_words(anycclProbe(0, 0, nullptr, &message_), anycclInvalidArgument, {"comm", "NULL"});
  expect_words(anycclProbe(0, 0, comm_, nullptr), anycclInvalidArgument, {"message", "NULL"});
  expect_words(anycclIprobe(0, 0, comm_, nullptr, &message_), anycclInvalidArgument,
               {"flag", "NULL"});
  expect_words(anycclIprobe(0, 0, comm_, &flag, nullptr), anycclInvalidArgument,
               {"message", "NULL"});
}
TEST_F(BadRequest, a_probe_in_a_group_would_wait_for_what_has_not_started) {
  ASSERT_EQ(anycclGroupStart(), anycclSuccess);
  expect_words(anycclProbe(0, 0, comm_, &message_), anycclInvalidUsage, {"group"});
  EXPECT_EQ(anycclGroupEnd(), anycclInvalidUsage);
}
TEST_F(BadRequest, synchronous_sends) {
  expect_words(anycclSsend(x_.data(), 3, anycclFloat32, 7, comm_, nullptr), anycclInvalidArgument,
               {"peer", "7"});
  expect_words(anycclSsend(x_.data(), 3, anycclFloat32, ANYCCL_ANY_SOURCE, comm_, nullptr),
               anycclInvalidArgument, {"peer", "-1"});
  expect_words(anycclSsend(nullptr, 3, anycclFloat32, 0, comm_, nullptr), anycclInvalidArgument,
               {"sendbuff", "NULL", "3"});
  expect_words(anycclSsend(x_.data(), 3, anycclNumTypes, 0, comm_, nullptr), anycclInvalidArgument,
               {"datatype", "17"});
}
TEST_F(BadRequest, calls_that_are_wrong_are_not_prepared) {
  anycclPrepared_t prepared = nullptr;
  expect_words(anycclPrepare(nullptr, comm_, &prepared), anycclInvalidArgument, {"call", "NULL"});
  expect_words(anycclPrepare(&call_, nullptr, &prepared), anycclInvalidArgument, {"comm", "NULL"});
  expect_words(anycclPrepare(&call_, comm_, nullptr), anycclInvalidArgument, {"prepared", "NULL"});
  call_.root = 3;
  expect_words(anycclPrepare(&call_, comm_, &prepared), anycclInvalidArgument, {"peer", "3"});
  call_.collective = anycclCollAllReduce;
  expect_words(anycclPrepare(&call_, comm_, &prepared), anycclInvalidArgument,
               {"recvbuff", "NULL", "64"});
  call_.recvbuff = x_.data();
  call_.op = anycclBand;
  expect_words(anycclPrepare(&call_, comm_, &prepared), anycclUnsupported, {"band", "f32"});
  call_.size = 1;
  expect_words(anycclPrepare(&call_, comm_, &prepared), anycclInvalidArgument, {"call.size", "1"});
  EXPECT_EQ(prepared, nullptr);
  EXPECT_EQ(anycclPreparedFree(nullptr), anycclSuccess);
}
TEST_F(BadRequest, starts) {
  anycclPrepared_t prepared = nullptr;
  anycclWork_t work = nullptr;
  ASSERT_EQ(anycclPrepare(&call_, comm_, &prepared), anycclSuccess);
  expect_words(anycclStart(nullptr, &work), anycclInvalidArgument, {"prepared", "NULL"});
  expect_words(anycclStart(prepared, nullptr), anycclInvalidArgument, {"work", "NULL"});
  const anycclPrepared_t two[] = {prepared, nullptr};
  anycclWork_t works[2] = {};
  expect_words(anycclStartAll(two, 2, works), anycclInvalidArgument, {"prepared[1]", "NULL"});
  expect_words(anycclStartAll(two, 2, nullptr), anycclInvalidArgument, {"works", "NULL"});
  expect_words(anycclStartAll(nullptr, 2, works), anycclInvalidArgument, {"prepared", "NULL"});
  EXPECT_EQ(works[0], nullptr);
  EXPECT_EQ(anycclStartAll(nullptr, 0, nullptr), anycclSuccess);
  EXPECT_EQ(anycclPreparedFree(prepared), anycclSuccess);
}
TEST_F(BadRequest, the_same_prepared_call_twice) {
  anycclPrepared_t prepared = nullptr;
  ASSERT_EQ(anycclPrepare(&call_, comm_, &prepared), anycclSuccess);
  const anycclPrepared_t two[] = {prepared, prepared};
  anycclWork_t works[2] = {};
  expect_words(anycclStartAll(two, 2, works), anycclInvalidUsage, {"not complete"});
  EXPECT_NE(works[0], nullptr);
  EXPECT_EQ(works[1], nullptr);
  EXPECT_OK(wait(comms_[0].recv(view(x_), Rank{0})));
  EXPECT_EQ(anycclWorkWaitAll(works, 2), anycclSuccess);
  EXPECT_EQ(anycclWorkFree(works[0]), anycclSuccess);
  EXPECT_EQ(anycclPreparedFree(prepared), anycclSuccess);
}
/// Small ones travel as one.
TEST_F(BadRequest, the_same_prepared_collective_twice) {
  auto alone = Communicator::init_all(1);
  ASSERT_OK(alone.status());
  float x = 1, y = 0;
  anycclCall_t call = call_of(anycclCollAllReduce, {&x, 1});
  call.recvbuff = &y;
  anycclPrepared_t prepared = nullptr;
  ASSERT_EQ(anycclPrepare(&call, (*alone)[0].handle(), &prepared), anycclSuccess);
  const anycclPrepared_t two[] = {prepared, prepared};
  anycclWork_t works[2] = {};
  expect_words(anycclStartAll(two, 2, works), anycclInvalidUsage, {"not complete"});
  EXPECT_EQ(works[1], nullptr);
  EXPECT_EQ(anycclWorkWaitAll(works, 2), anycclSuccess);
  EXPECT_EQ(y, 1);
  EXPECT_EQ(anycclWorkFree(works[0]), anycclSuccess);
  EXPECT_EQ(anycclPreparedFree(prepared), anycclSuccess);
}
TEST_F(BadRequest, lists_of_works) {
  std::size_t index = 0;
  expect_words(anycclWorkWaitAll(nullptr, 2), anycclInvalidArgument, {"works", "NULL"});
  expect_words(anycclWorkWaitAny(nullptr, 2, &index), anycclInvalidArgument, {"works", "NULL"});
  anycclWork_t none = nullptr;
  expect_words(anycclWorkWaitAny(&none, 1, nullptr), anycclInvalidArgument, {"index", "NULL"});
  expect_words(anycclWorkWaitAnyFor(&none, 1, 0, nullptr), anycclInvalidArgument,
               {"index", "NULL"});
  expect_words(anycclWorkTestAny(&none, 1, &index, nullptr), anycclInvalidArgument,
               {"done", "NULL"});
  EXPECT_EQ(anycclWorkWaitAny(nullptr, 0, &index), anycclSuccess);
  EXPECT_EQ(index, 0U);
}

}  // namespace
}  // namespace anyccl::test
