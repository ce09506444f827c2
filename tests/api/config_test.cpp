// Communicators that come and go in the background, finalizing, registering.

#include <thread>

#include "support/ranks.hpp"

namespace anyccl::test {
namespace {

/// Waits until the communicator is ready or has failed, and says so.
Status settled(const Communicator& comm) {
  for (;;) {
    const Result<bool> ready = comm.ready();
    if (!ready.ok()) return ready.status();
    if (*ready) return {};
    std::this_thread::yield();
  }
}

std::vector<Communicator> begun(int ranks, int of) {
  const auto id = UniqueId::create();
  EXPECT_TRUE(id.ok());
  std::vector<Communicator> comms;
  for (int r = 0; r < ranks; ++r) {
    auto comm = Communicator::begin_from_unique_id(*id, Rank{r}, of);
    EXPECT_TRUE(comm.ok()) << comm.status().message();
    comms.push_back(*std::move(comm));
  }
  return comms;
}

TEST(NonBlocking, one_thread_may_begin_all_ranks_and_use_them_when_they_are_ready) {
  std::vector<Communicator> comms = begun(3, 3);
  for (const Communicator& comm : comms) ASSERT_OK(settled(comm));
  std::vector<float> x(3, 1);
  ASSERT_EQ(anycclGroupStart(), anycclSuccess);
  for (std::size_t r = 0; r < 3; ++r)
    ASSERT_EQ(
        anycclAllReduce(&x[r], &x[r], 1, anycclFloat32, anycclSum, comms[r].handle(), nullptr),
        anycclSuccess);
  ASSERT_EQ(anycclGroupEnd(), anycclSuccess);
  EXPECT_EQ(x, std::vector<float>(3, 3));
  for (Communicator& comm : comms) ASSERT_OK(comm.finalize());
  for (Communicator& comm : comms) ASSERT_OK(settled(comm));
}

TEST(NonBlocking, one_that_is_not_ready_says_so_and_can_be_aborted) {
  std::vector<Communicator> comms = begun(1, 2);  // nobody else comes
  float x = 0;
  EXPECT_EQ(*comms[0].ready(), false);
  EXPECT_EQ(anycclAllReduce(&x, &x, 1, anycclFloat32, anycclSum, comms[0].handle(), nullptr),
            anycclInvalidUsage);
  EXPECT_NE(std::string(anycclGetLastError(comms[0].handle())).find("still being created"),
            std::string::npos);
  EXPECT_OK(comms[0].abort());
}

TEST(NonBlocking, tells_why_it_could_not_be_created) {
  const Environment env(Environment::Variables{{"ANYCCL_TIMEOUT", "0.3"}});
  std::vector<Communicator> comms = begun(1, 2);
  const Status status = settled(comms[0]);
  EXPECT_EQ(status.code(), Code::timeout) << status.message();
  EXPECT_NE(status.message().find("missing: 1"), std::string::npos) << status.message();
  float x = 0;
  EXPECT_EQ(anycclAllReduce(&x, &x, 1, anycclFloat32, anycclSum, comms[0].handle(), nullptr),
            anycclTimeout);
}

TEST(NonBlocking, one_that_is_being_finalized_can_be_aborted_and_its_peers_hear_of_it) {
  std::vector<Communicator> comms = begun(2, 2);
  for (const Communicator& comm : comms) ASSERT_OK(settled(comm));
  std::vector<float> x(1), y(1);
  ASSERT_OK(comms[0].recv(x, Rank{1}).status());  // never comes
  ASSERT_OK(comms[0].finalize());
  EXPECT_EQ(*comms[0].ready(), false);
  ASSERT_OK(comms[0].abort());
  const Status heard = wait(comms[1].recv(y, Rank{0}));
  EXPECT_NE(heard.message().find("rank 0"), std::string::npos) << heard.message();
  EXPECT_NE(heard.message().find("aborted"), std::string::npos) << heard.message();
}

TEST(NonBlocking, begins_at_once_inside_a_group) {
  const auto id = UniqueId::create();
  ASSERT_TRUE(id.ok());
  anycclConfig_t config = ANYCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  std::vector<anycclComm_t> comms(2);
  ASSERT_EQ(anycclGroupStart(), anycclSuccess);
  for (int r = 0; r < 2; ++r)
    EXPECT_EQ(
        anycclCommInitRankConfig(&comms[static_cast<std::size_t>(r)], 2, id->value(), r, &config),
        anycclInProgress);
  EXPECT_EQ(anycclGroupEnd(), anycclSuccess);
  for (const anycclComm_t comm : comms) {
    anycclResult_t state = anycclInProgress;
    while (state == anycclInProgress)
      ASSERT_EQ(anycclCommGetAsyncError(comm, &state), anycclSuccess);
    EXPECT_EQ(state, anycclSuccess);
  }
  for (const anycclComm_t comm : comms) EXPECT_EQ(anycclCommDestroy(comm), anycclSuccess);
}

/// The program may change it while the call's work is still to come, in any thread.
TEST(Creation, goes_by_the_environment_of_its_call) {
  anycclConfig_t config = ANYCCL_CONFIG_INITIALIZER;
  for (anycclConfig_t* const given : {static_cast<anycclConfig_t*>(nullptr), &config}) {
    const auto id = UniqueId::create();
    ASSERT_TRUE(id.ok());
    anycclComm_t comm = nullptr;
    ASSERT_EQ(anycclGroupStart(), anycclSuccess);
    {
      const Environment env(Environment::Variables{{"ANYCCL_TIMEOUT", "soon"}});
      EXPECT_EQ(anycclCommInitRankConfig(&comm, 1, id->value(), 0, given), anycclSuccess);
    }
    EXPECT_EQ(anycclGroupEnd(), anycclInvalidArgument);
    EXPECT_NE(std::string(anycclGetLastError(nullptr)).find("ANYCCL_TIMEOUT=soon"),
              std::string::npos);
  }
}

TEST(NonBlocking, is_started_by_the_launcher_of_its_call) {
  anycclConfig_t config = ANYCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  for (int i = 0; i < 10; ++i) {
    anycclComm_t comm = nullptr;
    {
      const Environment env(Environment::Variables{{"OMPI_COMM_WORLD_RANK", "0"},
                                                   {"OMPI_COMM_WORLD_SIZE", "1"},
                                                   {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}});
      ASSERT_EQ(anycclCommInitEnvConfig(&comm, &config), anycclInProgress);
    }
    anycclResult_t state = anycclInProgress;
    while (state == anycclInProgress) anycclCommGetAsyncError(comm, &state);
    EXPECT_EQ(state, anycclSuccess) << anycclGetLastError(comm);
    EXPECT_EQ(anycclCommDestroy(comm), anycclSuccess);
  }
}

TEST(NonBlocking, splits_in_the_background) {
  run_ranks(4, [](Communicator& comm) {
    anycclConfig_t config = ANYCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    const int me = index(comm.rank());
    anycclComm_t part = nullptr;
    EXPECT_EQ(anycclCommSplit(comm.handle(), me == 3 ? ANYCCL_SPLIT_NOCOLOR : 0, 0, &part, &config),
              anycclInProgress);
    anycclResult_t state = anycclInProgress;
    while (state == anycclInProgress)
      ASSERT_EQ(anycclCommGetAsyncError(part, &state), anycclSuccess);
    EXPECT_EQ(state, anycclSuccess) << anycclGetLastError(part);
    int size = 0;
    EXPECT_EQ(anycclCommCount(part, &size), me == 3 ? anycclInvalidUsage : anycclSuccess);
    EXPECT_EQ(size, me == 3 ? 0 : 3);
    EXPECT_EQ(anycclCommDestroy(part), anycclSuccess);
  });
}

/// As with NCCL: a program may ask the parent alone, and no configuration is the parent's.
TEST(NonBlocking, a_parent_is_in_progress_until_what_is_made_from_it_can_be_used) {
  for (const bool has_config : {false, true})
    run_ranks(2, [&](Communicator& comm) {
      anycclConfig_t config = ANYCCL_CONFIG_INITIALIZER;
      config.blocking = 0;
      anycclComm_t first = nullptr, second = nullptr;
      const auto wait_for = [](anycclComm_t parent) {
        anycclResult_t state = anycclInProgress;
        while (state == anycclInProgress)
          ASSERT_EQ(anycclCommGetAsyncError(parent, &state), anycclSuccess);
        EXPECT_EQ(state, anycclSuccess) << anycclGetLastError(parent);
      };
      ASSERT_EQ(anycclCommSplit(comm.handle(), 0, 0, &first, &config), anycclInProgress);
      wait_for(comm.handle());
      config.blocking = ANYCCL_CONFIG_UNDEF_INT;
      ASSERT_EQ(anycclCommSplit(first, 0, 0, &second, has_config ? &config : nullptr),
                anycclInProgress);
      wait_for(first);
      int size = 0;
      EXPECT_EQ(anycclCommCount(second, &size), anycclSuccess) << anycclGetLastError(second);
      EXPECT_EQ(size, 2);
      EXPECT_EQ(anycclCommDestroy(second), anycclSuccess);
      EXPECT_EQ(anycclCommDestroy(first), anycclSuccess);
    });
}

TEST(Finalize, completes_what_was_issued_and_refuses_what_comes_then) {
  run_ranks(3, [](Communicator& comm) {
    float x = 1;
    auto work = comm.all_reduce({&x, 1, DType::f32}, {&x, 1, DType::f32}, ReduceOp::sum);
    ASSERT_TRUE(work.ok());
    ASSERT_OK(comm.finalize());
    EXPECT_EQ(x, 3);
    const Status refused = wait(comm.barrier());
    EXPECT_EQ(refused.code(), Code::invalid_usage);
    EXPECT_NE(refused.message().find("finalized"), std::string::npos) << refused.message();
    EXPECT_EQ(comm.finalize().code(), Code::invalid_usage);
  });
}

TEST(Config, that_was_not_initialized_is_refused) {
  const auto id = UniqueId::create();
  ASSERT_TRUE(id.ok());
  anycclComm_t comm = nullptr;
  anycclConfig_t config{};
  EXPECT_EQ(anycclCommInitRankConfig(&comm, 1, id->value(), 0, &config), anycclInvalidArgument);
  EXPECT_NE(std::string(anycclGetLastError(nullptr)).find("ANYCCL_CONFIG_INITIALIZER"),
            std::string::npos);
  config = ANYCCL_CONFIG_INITIALIZER;
  config.blocking = 7;
  EXPECT_EQ(anycclCommInitRankConfig(&comm, 1, id->value(), 0, &config), anycclInvalidArgument);
  config.blocking = 1;
  EXPECT_EQ(anycclCommInitRankConfig(&comm, 1, id->value(), 0, &config), anycclSuccess);
  EXPECT_EQ(anycclCommDestroy(comm), anycclSuccess);
}

TEST(Config, has_fields_of_nccl_that_change_nothing) {
  const auto id = UniqueId::create();
  ASSERT_TRUE(id.ok());
  anycclConfig_t config = ANYCCL_CONFIG_INITIALIZER;
  config.maxP2pPeers = config.graphStreamOrdering = config.launchOrderImplicit = 1;
  config.numRmaSig = config.rmaEagerInit = config.hostCftMode = config.nvlsHostMode = 1;
  anycclComm_t comm = nullptr;
  EXPECT_EQ(anycclCommInitRankConfig(&comm, 1, id->value(), 0, &config), anycclSuccess);
  EXPECT_EQ(anycclCommDestroy(comm), anycclSuccess);
}

TEST(Config, holds_texts_that_are_copied_when_it_is_used) {
  const auto id = UniqueId::create();
  ASSERT_TRUE(id.ok());
  std::string rules = "all_reduce:ring";
  anycclConfig_t config = ANYCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  config.algo = rules.c_str();
  anycclComm_t comm = nullptr;
  EXPECT_EQ(anycclCommInitRankConfig(&comm, 1, id->value(), 0, &config), anycclInProgress);
  std::fill(rules.begin(), rules.end(), 'x');
  anycclResult_t state = anycclInProgress;
  while (state == anycclInProgress) ASSERT_EQ(anycclCommGetAsyncError(comm, &state), anycclSuccess);
  float x = 1;
  EXPECT_EQ(anycclAllReduce(&x, &x, 1, anycclFloat32, anycclSum, comm, nullptr), anycclSuccess);
  const char* plan = "";
  EXPECT_EQ(anycclCommLastPlan(comm, &plan), anycclSuccess);
  EXPECT_EQ(std::string(plan).find("all_reduce/ring"), 0U) << plan;
  EXPECT_EQ(anycclCommDestroy(comm), anycclSuccess);
}

/// The error of a Barrier with this configuration, on one rank.
std::string refused(const anycclCollConfig_t& config, anycclCollective_t what = anycclCollBarrier) {
  auto comms = Communicator::init_all(1);
  anycclCall_t call{};
  call.size = sizeof call;
  call.collective = what;
  call.config = &config;
  const anycclResult_t result = anycclRun(&call, (*comms)[0].handle());
  EXPECT_EQ(result, anycclInvalidArgument);
  EXPECT_EQ(wait((*comms)[0].barrier()).code(), Code::ok) << "the communicator goes on";
  return result == anycclSuccess ? "" : anycclGetLastError((*comms)[0].handle());
}

TEST(CallConfig, that_is_wrong_is_refused_with_its_field_and_value) {
  constexpr anycclCollConfig_t kInitial = ANYCCL_COLLCONFIG_INITIALIZER;
  EXPECT_EQ(refused({}),
            "config was not set to ANYCCL_COLLCONFIG_INITIALIZER, or for another version");
  anycclCollConfig_t config = kInitial;
  config.forceAlgSelection = 2;
  EXPECT_EQ(refused(config), "config->forceAlgSelection is 2 instead of 0 or 1");
  config = kInitial;
  config.chunkBytes = -1;
  EXPECT_EQ(refused(config), "config->chunkBytes is -1 bytes");
  config.chunkBytes = 7;
  EXPECT_EQ(refused(config), "config->chunkBytes=7 is not in 4096..1073741824 bytes");
  config = kInitial;
  config.algSelection = "rnig";
  EXPECT_EQ(refused(config).find("config->algSelection: 'rnig' is not an algorithm"), 0U);
  config = kInitial;
  config.proto = "LL@";
  EXPECT_EQ(refused(config).find("config->proto: 'LL@' has no sizes"), 0U);
  EXPECT_EQ(refused(kInitial, anycclCollSend), "config is for collectives, and this is a send");
}

TEST(CallConfig, of_nothing_is_that_of_the_plain_call) {
  auto comms = Communicator::init_all(1);
  ASSERT_TRUE(comms.ok());
  const anycclComm_t comm = (*comms)[0].handle();
  anycclCollConfig_t config = ANYCCL_COLLCONFIG_INITIALIZER;
  config.minCTAs = config.maxCTAs = config.nvlsCTAs = config.cgaClusterSize = config.CTAPolicy = 3;
  float x = 3;
  for (const anycclCollConfig_t* one :
       std::initializer_list<const anycclCollConfig_t*>{nullptr, &config})
    EXPECT_EQ(anycclAllReduceConfig(&x, &x, 1, anycclFloat32, anycclSum, comm, nullptr, one),
              anycclSuccess);
  EXPECT_EQ(anycclAllReduceConfig(&x, &x, 1, anycclFloat32, anycclSum, nullptr, nullptr, &config),
            anycclInvalidArgument);
}

TEST(Register, gives_a_handle_that_can_be_given_back_once) {
  auto comms = Communicator::init_all(1);
  ASSERT_TRUE(comms.ok());
  const anycclComm_t comm = (*comms)[0].handle();
  std::vector<float> x(64);
  void* handle = nullptr;
  EXPECT_EQ(anycclCommRegister(comm, x.data(), 0, &handle), anycclInvalidArgument);
  EXPECT_EQ(anycclCommRegister(comm, nullptr, 4, &handle), anycclInvalidArgument);
  ASSERT_EQ(anycclCommRegister(comm, x.data(), 256, &handle), anycclSuccess);
  EXPECT_EQ(anycclCommDeregister(comm, handle), anycclSuccess);
  EXPECT_EQ(anycclCommDeregister(comm, handle), anycclInvalidArgument);
}

}  // namespace
}  // namespace anyccl::test
