// Communicators of fewer ranks than another one, and of more.

#include "support/ranks.hpp"

namespace anyccl::test {
namespace {

#define ASSERT_SUCCESS(...) ASSERT_EQ((__VA_ARGS__), anycclSuccess) << anycclGetLastError(nullptr)

std::string last_error() {
  return anycclGetLastError(nullptr);
}

int sum(anycclComm_t comm, int value) {
  EXPECT_EQ(anycclAllReduce(&value, &value, 1, anycclInt32, anycclSum, comm, nullptr),
            anycclSuccess)
      << last_error();
  return value;
}

int rank_in(anycclComm_t comm) {
  int rank = -1;
  EXPECT_EQ(anycclCommUserRank(comm, &rank), anycclSuccess);
  return rank;
}

TEST(Shrink, ranks_that_are_left_keep_their_order) {
  run_ranks(5, [](Communicator& world) {
    const int me = index(world.rank());
    anycclComm_t fewer = nullptr;
    std::vector<int> excluded{3, 0};
    if (me != 0 && me != 3) {
      ASSERT_SUCCESS(anycclCommShrink(world.handle(), excluded.data(), 2, &fewer, nullptr,
                                      ANYCCL_SHRINK_DEFAULT));
      EXPECT_EQ(rank_in(fewer), me == 4 ? 2 : me - 1);
      EXPECT_EQ(sum(fewer, me), 1 + 2 + 4);
      EXPECT_EQ(anycclCommDestroy(fewer), anycclSuccess);
    }
    EXPECT_EQ(sum(world.handle(), 1), 5) << "the larger one goes on";
  });
}

TEST(Shrink, without_excluded_ranks_is_a_duplicate) {
  run_ranks(2, [](Communicator& world) {
    anycclComm_t same = nullptr, again = nullptr;
    ASSERT_SUCCESS(anycclCommShrink(world.handle(), nullptr, 0, &same, nullptr, 0));
    ASSERT_SUCCESS(anycclCommShrink(same, nullptr, 0, &again, nullptr, 0));
    EXPECT_EQ(sum(again, 1), 2);
    EXPECT_EQ(anycclCommDestroy(again), anycclSuccess);
    EXPECT_EQ(anycclCommDestroy(same), anycclSuccess);
  });
}

TEST(Shrink, to_one_rank) {
  run_ranks(3, [](Communicator& world) {
    std::vector<int> excluded{0, 2};
    anycclComm_t alone = nullptr;
    if (world.rank() == Rank{1}) {
      ASSERT_SUCCESS(anycclCommShrink(world.handle(), excluded.data(), 2, &alone, nullptr, 0));
      EXPECT_EQ(sum(alone, 7), 7);
    }
    EXPECT_EQ(anycclCommDestroy(alone), anycclSuccess);
  });
}

TEST(Shrink, processes_over_tcp) {
  const auto outcomes = run_processes(
      3,
      [](Communicator& world) {
        int excluded = 1;
        anycclComm_t pair = nullptr;
        if (world.rank() != Rank{1}) {
          ASSERT_SUCCESS(anycclCommShrink(world.handle(), &excluded, 1, &pair, nullptr, 0));
          EXPECT_EQ(sum(pair, 1), 2);
        }
        EXPECT_EQ(anycclCommDestroy(pair), anycclSuccess);
        EXPECT_EQ(sum(world.handle(), 1), 3);
      },
      [](int) {
        return Environment::Variables{{"ANYCCL_TRANSPORT", "tcp"}};
      });
  expect_all_passed(outcomes);
}

TEST(Shrink, in_the_background) {
  run_ranks(2, [](Communicator& world) {
    anycclConfig_t config = ANYCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    anycclComm_t made = nullptr;
    EXPECT_EQ(anycclCommShrink(world.handle(), nullptr, 0, &made, &config, 0), anycclInProgress);
    anycclResult_t state = anycclInProgress;
    while (state == anycclInProgress) ASSERT_SUCCESS(anycclCommGetAsyncError(made, &state));
    EXPECT_EQ(state, anycclSuccess) << last_error();
    EXPECT_EQ(sum(made, 1), 2);
    EXPECT_EQ(anycclCommDestroy(made), anycclSuccess);
  });
}

TEST(Shrink, different_lists_are_an_error_on_all_that_are_left) {
  run_ranks(4, [](Communicator& world) {
    const int me = index(world.rank());
    std::vector<int> excluded{3, 2};
    anycclComm_t made = nullptr;
    if (me < 2) {  // rank 0 leaves out 3 twice, and so counts on rank 2, which makes the call
      if (me == 0) excluded = {3, 3};
      EXPECT_EQ(anycclCommShrink(world.handle(), excluded.data(), 2, &made, nullptr, 0),
                anycclRemoteError);
    } else if (me == 2) {
      excluded = {3};
      EXPECT_EQ(anycclCommShrink(world.handle(), excluded.data(), 1, &made, nullptr, 0),
                anycclRemoteError);
    }
    if (me < 3) {
      EXPECT_NE(last_error().find("rank 1 leaves out other ranks than rank 0"), std::string::npos)
          << last_error();
    }
    EXPECT_TRUE(made == ANYCCL_COMM_NULL);
    EXPECT_EQ(sum(world.handle(), 1), 4);
  });
}

TEST(Shrink, names_what_is_wrong_with_its_arguments) {
  run_ranks(2, [](Communicator& world) {
    const int me = index(world.rank());
    anycclComm_t made = nullptr;
    const auto refused = [&](std::vector<int> list, int count, int flags, anycclResult_t want,
                             const char* words) {
      EXPECT_EQ(anycclCommShrink(world.handle(), list.empty() ? nullptr : list.data(), count, &made,
                                 nullptr, flags),
                want);
      EXPECT_NE(last_error().find(words), std::string::npos) << last_error();
    };
    refused({1 - me, 2}, 2, 0, anycclInvalidArgument, "excludeRanksList[1] is 2");
    refused({-1}, 1, 0, anycclInvalidArgument, "excludeRanksList[0] is -1");
    refused({me}, 1, 0, anycclInvalidArgument, "the calling rank");
    refused({}, 1, 0, anycclInvalidArgument, "excludeRanksList is NULL");
    refused({}, -1, 0, anycclInvalidArgument, "excludeRanksCount is -1");
    refused({}, 0, 2, anycclInvalidArgument, "shrinkFlags is 2");
    EXPECT_EQ(anycclCommShrink(world.handle(), nullptr, 0, nullptr, nullptr, 0),
              anycclInvalidArgument);
    EXPECT_EQ(sum(world.handle(), 1), 2);
  });
}

TEST(Shrink, a_rank_that_does_not_come_is_named) {
  const Environment limit(Environment::Variables{{"ANYCCL_TIMEOUT", "0.3"}});
  run_ranks(2, [](Communicator& world) {
    anycclComm_t made = nullptr;
    if (world.rank() == Rank{0}) {
      EXPECT_EQ(anycclCommShrink(world.handle(), nullptr, 0, &made, nullptr, 0), anycclTimeout);
      EXPECT_NE(last_error().find("rank 1"), std::string::npos) << last_error();
    } else {
      anycclResult_t state = anycclSuccess;  // hears of it
      while (state == anycclSuccess)
        ASSERT_SUCCESS(anycclCommGetAsyncError(world.handle(), &state));
    }
  });
}

/// Ranks 0 and 1 of a communicator, and rank 2, which joins them.
void grow_by_one(const std::function<void(anycclComm_t larger, int rank)>& use) {
  run_ranks(3, [&](Communicator& world) {
    const int me = index(world.rank());
    anycclComm_t pair = nullptr, larger = nullptr;
    ASSERT_SUCCESS(
        anycclCommSplit(world.handle(), me < 2 ? 0 : ANYCCL_SPLIT_NOCOLOR, 0, &pair, nullptr));
    anycclUniqueId id;
    if (me == 1) {
      ASSERT_SUCCESS(anycclCommGetUniqueId(pair, &id));
    }
    ASSERT_SUCCESS(anycclBcast(&id, sizeof id, anycclChar, 1, world.handle(), nullptr));
    if (me < 2) {
      ASSERT_SUCCESS(anycclCommGrow(pair, 3, me == 1 ? &id : nullptr, -1, &larger, nullptr));
    } else {
      ASSERT_SUCCESS(anycclCommGrow(ANYCCL_COMM_NULL, 3, &id, 2, &larger, nullptr));
    }
    use(larger, me);
    EXPECT_EQ(anycclCommDestroy(larger), anycclSuccess);
    if (me < 2) {
      EXPECT_EQ(sum(pair, 1), 2);
    }
    EXPECT_EQ(anycclCommDestroy(pair), anycclSuccess);
  });
}

TEST(Grow, old_ranks_keep_their_numbers) {
  grow_by_one([](anycclComm_t larger, int me) {
    EXPECT_EQ(rank_in(larger), me);
    EXPECT_EQ(sum(larger, 1 << me), 7);
  });
}

TEST(Grow, what_one_rank_has_wrong_is_an_error_on_all) {
  run_ranks(2, [](Communicator& world) {
    const int me = index(world.rank());
    anycclComm_t made = nullptr;
    anycclUniqueId id;
    ASSERT_SUCCESS(anycclCommGetUniqueId(world.handle(), &id));
    const auto refused = [&](int nranks, const anycclUniqueId* known, const char* words) {
      EXPECT_NE(anycclCommGrow(world.handle(), nranks, known, -1, &made, nullptr), anycclSuccess);
      EXPECT_NE(last_error().find(words), std::string::npos) << last_error();
    };
    refused(me == 0 ? 3 : 4, &id, "rank 0 grows to 3 ranks, but rank 1 to 4");
    refused(3, nullptr, "no rank has a unique id");
    refused(3, &id, "ranks 0 and 1 both have a unique id");
    refused(2, &id, "nranks 2 is not more than the 2 ranks of comm");
    refused(me == 0 ? 3 : 1, nullptr, "nranks 1 is not more than the 2 ranks of comm");
    anycclUniqueId broken = id;
    broken.internal[20] ^= 1;
    refused(3, me == 0 ? &broken : nullptr, "id");
    EXPECT_EQ(anycclCommGrow(world.handle(), 3, &id, 1, &made, nullptr), anycclInvalidArgument);
    EXPECT_NE(last_error().find("rank is 1"), std::string::npos) << last_error();
    EXPECT_EQ(anycclCommGrow(nullptr, 3, nullptr, 1, &made, nullptr), anycclInvalidArgument);
    EXPECT_EQ(sum(world.handle(), 1), 2);
  });
}

TEST(Resize, a_setting_that_one_rank_has_wrong_is_an_error_on_all) {
  run_ranks(2, [](Communicator& world) {
    anycclConfig_t config = ANYCCL_CONFIG_INITIALIZER;
    if (world.rank() == Rank{1}) config.chunkBytes = -5;
    anycclComm_t made = nullptr;
    const auto refused = [](anycclResult_t result) {
      EXPECT_NE(result, anycclSuccess);
      EXPECT_NE(last_error().find("chunkBytes is -5"), std::string::npos) << last_error();
    };
    anycclUniqueId id;
    ASSERT_SUCCESS(anycclCommGetUniqueId(world.handle(), &id));
    const bool first = world.rank() == Rank{0};
    refused(anycclCommSplit(world.handle(), 0, 0, &made, &config));
    refused(anycclCommShrink(world.handle(), nullptr, 0, &made, &config, 0));
    refused(anycclCommGrow(world.handle(), 3, first ? &id : nullptr, -1, &made, &config));
    EXPECT_EQ(sum(world.handle(), 1), 2);
  });
}

TEST(Revoke, ends_the_operations_of_all_ranks_and_names_the_one_that_did_it) {
  run_ranks(2, [](Communicator& world) {
    if (world.rank() == Rank{1}) {
      EXPECT_EQ(anycclCommRevoke(world.handle(), 1), anycclInvalidArgument);
      ASSERT_SUCCESS(anycclCommRevoke(world.handle(), ANYCCL_REVOKE_DEFAULT));
    }
    EXPECT_EQ(anycclBarrier(world.handle(), nullptr), anycclAborted);
    EXPECT_NE(last_error().find("rank 1"), std::string::npos) << last_error();
    EXPECT_NE(last_error().find("revoked"), std::string::npos) << last_error();
  });
}

TEST(Suspend, is_refused_by_name) {
  run_ranks(1, [](Communicator& world) {
    EXPECT_EQ(anycclCommSuspend(world.handle(), ANYCCL_SUSPEND_MEM), anycclUnsupported);
    EXPECT_NE(last_error().find("anycclCommSuspend"), std::string::npos);
    EXPECT_EQ(anycclCommResume(world.handle()), anycclUnsupported);
    EXPECT_NE(last_error().find("anycclCommResume"), std::string::npos);
    EXPECT_EQ(anycclCommSuspend(nullptr, 1), anycclInvalidArgument);
  });
}

std::uint64_t memory_of(anycclComm_t comm, anycclCommMemStat_t stat) {
  std::uint64_t value = 0;
  EXPECT_EQ(anycclCommMemStats(comm, stat, &value), anycclSuccess) << last_error();
  return value;
}

TEST(Memory, of_a_communicator_grows_with_what_it_needs) {
  run_ranks(2, [](Communicator& world) {
    const std::uint64_t fresh = memory_of(world.handle(), anycclStatGpuMemTotal);
    EXPECT_GT(fresh, 4096U);
    std::vector<float> data(std::size_t{1} << 20);
    ASSERT_SUCCESS(anycclAllReduce(data.data(), data.data(), data.size(), anycclFloat, anycclSum,
                                   world.handle(), nullptr));
    const std::uint64_t used = memory_of(world.handle(), anycclStatGpuMemTotal);
    EXPECT_GE(used, fresh + 65536);
    EXPECT_EQ(memory_of(world.handle(), anycclStatGpuMemPersist), used);
    EXPECT_EQ(memory_of(world.handle(), anycclStatGpuMemSuspend), 0U);
    EXPECT_EQ(memory_of(world.handle(), anycclStatGpuMemSuspended), 0U);
    EXPECT_EQ(anycclCommMemStats(world.handle(), anycclStatGpuMemTotal, nullptr),
              anycclInvalidArgument);
  });
}

}  // namespace
}  // namespace anyccl::test
