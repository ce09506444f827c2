// Ranks that are threads of one process carry on without some of them.

#include <atomic>
#include <memory>
#include <thread>

#include "support/ranks.hpp"

namespace anyccl::test {
namespace {

Status carry_on_into(Communicator& made, Communicator& failed,
                     const std::vector<Rank>& silent = {}) {
  return failed.shrink_into(made, silent, {}, ANYCCL_SHRINK_ABORT);
}

void expect_sum(Communicator& comm, float mine, float expected) {
  std::vector<float> x(50'000, mine);
  ASSERT_OK(wait(comm.all_reduce(view(x), view(x), ReduceOp::sum)));
  EXPECT_EQ(x, std::vector<float>(x.size(), expected));
}

/// Another communicator of the same ranks: when a barrier there is over, nobody is in a call of
/// `world`.
Communicator copy_of(Communicator& world) {
  Communicator copy;
  EXPECT_OK(world.split_into(copy, 0, index(world.rank())));
  EXPECT_OK(wait(copy.barrier()));
  return copy;
}

TEST(SurvivorThreads, carry_on_without_a_rank_that_has_gone) {
  run_ranks(4, [](Communicator& world) {
    if (world.rank() == Rank{1}) {
      ASSERT_OK(world.abort());
      return;
    }
    Communicator left;
    ASSERT_OK(carry_on_into(left, world));
    EXPECT_EQ(left.size(), 3);
    expect_sum(left, static_cast<float>(index(world.rank())), 0 + 2 + 3);
    ASSERT_OK(left.destroy());
  });
}

TEST(SurvivorThreads, may_ask_again_without_one_that_has_not_come) {
  run_ranks(3, [late = std::make_shared<std::atomic<int>>(0),
                over = std::make_shared<std::atomic<int>>(0)](Communicator& world) {
    if (world.rank() == Rank{2}) {
      while (*over < 2) std::this_thread::yield();
      return;
    }
    CommunicatorConfig config;
    config.fields.createTimeoutMs = 300;
    const auto same = world.shrink({}, config, ANYCCL_SHRINK_ABORT);
    EXPECT_EQ(same.status().code(), Code::timeout) << same.status().message();
    // Else the first call of one rank may meet the second one of the other.
    for (++*late; *late < 2;) std::this_thread::yield();
    Communicator left;
    ASSERT_OK(carry_on_into(left, world, {Rank{2}}));
    expect_sum(left, 1, 2);
    ++*over;
  });
}

/// Wherever a limit ends the call.
TEST(SurvivorThreads, may_ask_again_until_there_is_time_enough) {
  constexpr int kTimes = 10;
  for (int i = 0; i < kTimes && !testing::Test::HasFailure(); ++i)
    run_ranks(3, [over = std::make_shared<std::atomic<int>>(0)](Communicator& world) {
      if (world.rank() == Rank{2}) {
        while (*over < 2) std::this_thread::yield();
        return;
      }
      Communicator left;
      Status status{Code::timeout, ""};
      for (int limit_ms = 1; !status.ok() && limit_ms < 100'000; limit_ms *= 2) {
        CommunicatorConfig config;
        config.fields.createTimeoutMs = limit_ms;
        status = world.shrink_into(left, {Rank{2}}, config, ANYCCL_SHRINK_ABORT);
      }
      ++*over;
      ASSERT_OK(status);
      expect_sum(left, 1, 2);
    });
}

TEST(SurvivorThreads, count_what_has_completed) {
  run_ranks(2, [](Communicator& world) {
    Communicator beside = copy_of(world);
    std::uint64_t before = 0, here = 0, everywhere = 7;
    ASSERT_EQ(anycclCommCompleted(world.handle(), &before, nullptr), anycclSuccess);
    expect_sum(world, 1, 2);
    expect_sum(world, 2, 4);
    ASSERT_EQ(anycclCommCompleted(world.handle(), &here, &everywhere), anycclSuccess);
    EXPECT_EQ(here, before + 2);
    EXPECT_EQ(everywhere, 0U);
    ASSERT_OK(wait(beside.barrier()));
    anycclComm_t same = nullptr;
    ASSERT_EQ(anycclCommShrink(world.handle(), nullptr, 0, &same, nullptr, ANYCCL_SHRINK_ABORT),
              anycclSuccess)
        << anycclGetLastError(nullptr);
    ASSERT_EQ(anycclCommCompleted(world.handle(), nullptr, &everywhere), anycclSuccess);
    EXPECT_EQ(everywhere, here);
    EXPECT_EQ(anycclCommCompleted(nullptr, &here, nullptr), anycclInvalidArgument);
    EXPECT_EQ(anycclCommDestroy(same), anycclSuccess);
  });
}

TEST(SurvivorThreads, know_who_they_are) {
  run_ranks(4, [](Communicator& world) {
    EXPECT_EQ(world.survivors().status().code(), Code::invalid_usage);
    if (world.rank() == Rank{2}) {
      while (world.failure().ok()) std::this_thread::yield();  // until the others shrink it
      return;
    }
    Communicator left;
    ASSERT_OK(carry_on_into(left, world, {Rank{2}}));
    const auto survivors = world.survivors();
    ASSERT_OK(survivors.status());
    EXPECT_EQ(*survivors, (std::vector<Rank>{Rank{0}, Rank{1}, Rank{3}}));
    EXPECT_EQ((*survivors)[uindex(left.rank())], world.rank());
    int count = 0;
    EXPECT_EQ(anycclCommSurvivors(world.handle(), nullptr, &count), anycclSuccess);
    EXPECT_EQ(count, 3);
    EXPECT_EQ(anycclCommSurvivors(world.handle(), nullptr, nullptr), anycclInvalidArgument);
    EXPECT_EQ(anycclCommSurvivors(nullptr, nullptr, &count), anycclInvalidArgument);
    EXPECT_EQ(left.survivors().status().code(), Code::invalid_usage);
    expect_sum(left, 1, 3);
  });
}

TEST(SurvivorThreads, do_not_count_what_is_open) {
  run_ranks(2, [](Communicator& world) {
    Communicator beside = copy_of(world);
    std::vector<float> x(4, 1);
    const std::uint64_t before = world.completed()->here;
    if (world.rank() == Rank{0}) {
      auto one = world.all_reduce(view(x), view(x), ReduceOp::sum);
      ASSERT_OK(one.status());
      EXPECT_EQ(world.completed()->here, before);
    }
    ASSERT_OK(wait(beside.barrier()));
    Communicator same;
    ASSERT_OK(carry_on_into(same, world));
    EXPECT_EQ(world.completed()->here, before);
    EXPECT_EQ(world.completed()->everywhere, before);
  });
}

TEST(SurvivorThreads, end_what_still_runs) {
  run_ranks(3, [](Communicator& world) {
    std::thread waiting;
    if (world.rank() != Rank{2})
      waiting = std::thread([&] {
        std::vector<float> x(8);
        EXPECT_FALSE(wait(world.recv(view(x), Rank{2})).ok());
      });
    Communicator same;
    ASSERT_OK(carry_on_into(same, world));
    if (waiting.joinable()) waiting.join();
    EXPECT_EQ(same.size(), 3);
    expect_sum(same, 1, 3);
  });
}

TEST(SurvivorThreads, carry_on_after_one_has_revoked_the_communicator) {
  run_ranks(3, [](Communicator& world) {
    if (world.rank() == Rank{1}) ASSERT_OK(world.revoke());
    Status status;
    while (status.ok()) status = wait(world.barrier());
    EXPECT_EQ(status.code(), Code::aborted) << status.message();
    Communicator same;
    ASSERT_OK(carry_on_into(same, world));
    expect_sum(same, 1, 3);
  });
}

TEST(SurvivorThreads, do_not_wait_on_after_an_abort) {
  run_ranks(2, [](Communicator& world) {
    if (world.rank() == Rank{1}) {  // waits for the other, which never shrinks
      Communicator none;
      std::thread end([&world] {
        while (world.failure().ok()) std::this_thread::yield();  // until the call has begun
        EXPECT_EQ(anycclCommAbort(world.handle()), anycclSuccess);
      });
      const Status status = carry_on_into(none, world);
      EXPECT_EQ(status.code(), Code::aborted) << status.message();
      end.join();
    } else {
      while (world.failure().ok()) std::this_thread::yield();
    }
  });
}

TEST(SurvivorThreads, carry_on_in_the_background_and_in_groups) {
  run_ranks(3, [](Communicator& world) {
    CommunicatorConfig config;
    config.blocking = false;
    auto begun = world.shrink({}, config, ANYCCL_SHRINK_ABORT);
    ASSERT_TRUE(begun.ok()) << begun.status().message();
    for (bool is_ready = false; !is_ready;) {
      const Result<bool> ready = begun->ready();
      ASSERT_OK(ready.status());
      is_ready = *ready;
    }
    Communicator beside = copy_of(*begun);
    expect_sum(*begun, 1, 3);
    ASSERT_OK(wait(beside.barrier()));
    Communicator grouped;
    anycclGroupStart();
    EXPECT_OK(carry_on_into(grouped, *begun));
    ASSERT_EQ(anycclGroupEnd(), anycclSuccess) << anycclGetLastError(nullptr);
    expect_sum(grouped, 1, 3);
  });
}

TEST(SurvivorThreads, hear_that_one_cannot_take_part_and_may_ask_again) {
  run_ranks(3, [](Communicator& world) {
    CommunicatorConfig wrong;
    if (world.rank() == Rank{1}) wrong.fields.chunkBytes = -5;
    const Status refused = world.shrink({}, wrong, ANYCCL_SHRINK_ABORT).status();
    EXPECT_FALSE(refused.ok());
    EXPECT_NE(refused.message().find("chunkBytes is -5"), std::string::npos) << refused.message();
    Communicator same;
    ASSERT_OK(carry_on_into(same, world));
    expect_sum(same, 1, 3);
  });
}

TEST(SurvivorThreads, refuse_settings_that_differ) {
  run_ranks(2, [](Communicator& world) {
    CommunicatorConfig config;
    if (world.rank() == Rank{1}) config.fields.algo = "ring";
    const Status refused = world.shrink({}, config, ANYCCL_SHRINK_ABORT).status();
    EXPECT_EQ(refused.code(), Code::remote_error);
    EXPECT_NE(refused.message().find("settings differ"), std::string::npos) << refused.message();
  });
}

TEST(SurvivorThreads, are_asked_for_a_list_that_makes_sense) {
  run_ranks(2, [](Communicator& world) {
    Communicator beside = copy_of(world);
    const auto code_of = [&](Rank rank) {
      return world.shrink({rank}, {}, ANYCCL_SHRINK_ABORT).status().code();
    };
    EXPECT_EQ(code_of(Rank{2}), Code::invalid_argument);
    EXPECT_EQ(code_of(world.rank()), Code::invalid_argument);
    expect_sum(world, 1, 2);
    ASSERT_OK(wait(beside.barrier()));
    Communicator same;
    ASSERT_OK(carry_on_into(same, world));
    expect_sum(same, 1, 2);
  });
}

}  // namespace
}  // namespace anyccl::test
