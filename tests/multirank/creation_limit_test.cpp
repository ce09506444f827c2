// createTimeoutMs of a configuration: how long creating a communicator may take.

#include <chrono>
#include <latch>
#include <thread>

#include "support/ranks.hpp"

namespace anyccl::test {
namespace {

constexpr int kShort = 300, kGenerous = 60'000;  // ms

CommunicatorConfig limited(int milliseconds) {
  CommunicatorConfig config;
  config.fields.createTimeoutMs = milliseconds;
  return config;
}

void expect_timeout(const Status& status, const std::string& words) {
  EXPECT_EQ(status.code(), Code::timeout) << status.message();
  EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
}

/// A rank that makes no call hears that the communicator has failed for it.
void expect_failure(const Communicator& comm) {
  Status failure;
  while (failure.ok()) failure = comm.failure();
  EXPECT_EQ(failure.code(), Code::timeout) << failure.message();
}

/// Rank 0 makes a communicator by `create`, which ends in time and names rank 1, which does not
/// come.
void expect_absence(const std::function<Status(Communicator&)>& create) {
  run_ranks(2, [&](Communicator& comm) {
    if (comm.rank() == Rank{1}) return expect_failure(comm);
    expect_timeout(create(comm), "rank 1");
  });
}

TEST(CreationLimit, a_rank_that_does_not_join_is_named) {
  const auto id = UniqueId::create();
  ASSERT_OK(id.status());
  expect_timeout(Communicator::from_unique_id(*id, Rank{1}, 3, limited(kShort)).status(),
                 "missing: 0, 2");
}

TEST(CreationLimit, comes_before_the_environment) {
  const Environment env(Environment::Variables{{"ANYCCL_TIMEOUT", "0.001"}});
  std::vector<Communicator> comms;
  const auto id = UniqueId::create();
  ASSERT_OK(id.status());
  CommunicatorConfig config = limited(kGenerous);
  config.blocking = false;
  for (int r = 0; r < 2; ++r) {
    auto comm = Communicator::from_unique_id(*id, Rank{r}, 2, config);
    ASSERT_OK(comm.status());
    comms.push_back(*std::move(comm));
  }
  for (const Communicator& comm : comms) {
    Result<bool> ready = comm.ready();
    while (ready.ok() && !*ready) ready = comm.ready();
    EXPECT_OK(ready.status());
  }
}

TEST(CreationLimit, of_a_launched_rank_names_the_one_that_does_not_come) {
  const Environment env(Environment::Variables{
      {"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "1"}});
  expect_timeout(Communicator::from_env(limited(kShort)).status(), "is rank 0 running");
  anycclConfig_t config = limited(kShort).c_config();
  config.blocking = 0;
  anycclComm_t comm = nullptr;
  ASSERT_EQ(anycclCommInitEnvConfig(&comm, &config), anycclInProgress);
  anycclResult_t state = anycclInProgress;
  while (state == anycclInProgress) ASSERT_EQ(anycclCommGetAsyncError(comm, &state), anycclSuccess);
  expect_timeout({static_cast<Code>(state), anycclGetLastError(comm)}, "is rank 0 running");
  EXPECT_EQ(anycclCommAbort(comm), anycclSuccess);
}

TEST(CreationLimit, of_a_split_names_the_rank_that_does_not_come) {
  expect_absence([](Communicator& comm) { return comm.split(0, 0, limited(kShort)).status(); });
}

/// ANYCCL_TIMEOUT is the time for what comes when all have called it.
TEST(CreationLimit, of_the_environment_does_not_count_the_wait_for_a_split) {
  constexpr std::chrono::milliseconds kLimit{1500};
  const Environment env(
      Environment::Variables{{"ANYCCL_TIMEOUT", "1.5"}, {"ANYCCL_TRANSPORT", "shm"}});
  run_ranks(2, [&](Communicator& comm) {
    // The limit itself is what must have passed; how much later it becomes does not matter.
    if (comm.rank() == Rank{1}) std::this_thread::sleep_for(kLimit + kLimit / 10);
    auto part = comm.split(0, 0);
    ASSERT_OK(part.status());
    ASSERT_OK(wait(part->barrier()));
  });
}

TEST(CreationLimit, of_shrinking_names_the_rank_that_does_not_come) {
  expect_absence([](Communicator& comm) { return comm.shrink({}, limited(kShort)).status(); });
}

TEST(CreationLimit, of_growing_names_the_rank_that_does_not_come) {
  expect_absence([](Communicator& comm) {
    const auto id = comm.grow_id();
    return comm.grow(3, &*id, Rank{-1}, limited(kShort)).status();
  });
}

TEST(CreationLimit, of_growing_names_the_new_rank_that_does_not_come) {
  run_ranks(2, [](Communicator& comm) {
    const auto id = comm.grow_id();
    const bool first = comm.rank() == Rank{0};
    expect_timeout(comm.grow(3, first ? &*id : nullptr, Rank{-1}, limited(kShort)).status(),
                   "missing: 2");
  });
}

TEST(CreationLimit, of_carrying_on_names_the_rank_that_does_not_come_and_may_be_repeated) {
  std::latch over(1);
  run_ranks(2, [&](Communicator& comm) {
    if (comm.rank() == Rank{1}) return over.wait();
    expect_timeout(comm.shrink({}, limited(kShort), ANYCCL_SHRINK_ABORT).status(), "rank 1");
    EXPECT_OK(comm.shrink({Rank{1}}, limited(kGenerous), ANYCCL_SHRINK_ABORT).status());
    over.count_down();
  });
}

TEST(CreationLimit, that_is_none_is_refused) {
  run_ranks(1, [](Communicator& comm) {
    for (const int wrong : {0, -5, 86'400'001}) {
      const Status status = comm.split(0, 0, limited(wrong)).status();
      EXPECT_EQ(status.code(), Code::invalid_argument);
      EXPECT_EQ(status.message(), "config->createTimeoutMs is " + std::to_string(wrong) +
                                      " ms instead of 1 to 86400000");
    }
    EXPECT_OK(comm.split(0, 0, limited(86'400'000)).status());
  });
}

}  // namespace
}  // namespace anyccl::test
