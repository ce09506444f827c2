// Ranks that are left after others have died carry on in a communicator of their own.

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <numeric>
#include <set>
#include <thread>

#include "support/ranks.hpp"

namespace anyccl::test {
namespace {

class Survivors : public testing::TestWithParam<std::string> {
 protected:
  void run(int ranks, const std::set<int>& victims, const Body& body, double timeout_s = 60) const {
    const auto variables = [&](int) {
      return Environment::Variables{{"ANYCCL_TRANSPORT", GetParam()},
                                    {"ANYCCL_TIMEOUT", std::to_string(timeout_s)}};
    };
    const auto outcomes = run_processes(ranks, body, variables, 60);
    for (std::size_t r = 0; r < outcomes.size(); ++r)
      EXPECT_EQ(outcomes[r].exit_code, victims.contains(static_cast<int>(r)) ? -SIGKILL : 0)
          << "rank " << r << ": " << outcomes[r].output;
  }
};
INSTANTIATE_TEST_SUITE_P(transports, Survivors, testing::Values("shm", "tcp"),
                         [](const auto& tested) { return tested.param; });

Communicator carry_on(Communicator& failed, const std::vector<Rank>& silent = {}) {
  auto made = failed.shrink(silent, {}, ANYCCL_SHRINK_ABORT);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return made.ok() ? std::move(*made) : Communicator();
}

bool has_names(const Status& status, const std::string& words) {
  return status.message().find(words) != std::string::npos;
}

Status reduce(Communicator& comm, std::size_t count, float mine, float& sum) {
  std::vector<float> x(count, mine);
  const Status status = wait(comm.all_reduce(view(x), view(x), ReduceOp::sum));
  sum = x.front();
  EXPECT_TRUE(!status.ok() || x.back() == sum);
  return status;
}

/// A copy of `world`, which nobody is in a call of any more.
Communicator copy_of(Communicator& world) {
  auto copied = world.split(0, index(world.rank()));
  EXPECT_TRUE(copied.ok()) << copied.status().message();
  EXPECT_OK(wait(copied->barrier()));
  return std::move(*copied);
}

/// Each rank gives the number that it had at the beginning.
void expect_ranks(Communicator& comm, int me, const std::vector<int>& left) {
  ASSERT_EQ(comm.size(), static_cast<int>(left.size()));
  EXPECT_EQ(left[uindex(comm.rank())], me);
  const auto expected = static_cast<float>(std::accumulate(left.begin(), left.end(), 0));
  for (const std::size_t count : {std::size_t{1}, std::size_t{100'000}, std::size_t{1}}) {
    float sum = 0;
    ASSERT_OK(reduce(comm, count, static_cast<float>(me), sum));
    EXPECT_EQ(sum, expected);
  }
}

/// Reduces until somebody dies; `dies`: this rank, in operation `at`.
void reduce_until_failure(Communicator& comm, bool dies = false, int at = 0) {
  Status status;
  for (int i = 0; status.ok(); ++i) {
    if (dies && i == at) ::raise(SIGKILL);
    float sum = 0;
    status = reduce(comm, i % 3 == 0 ? 20'000 : 3, 1, sum);
  }
}

std::vector<int> all_but(int ranks, const std::set<int>& victims) {
  std::vector<int> left;
  for (int r = 0; r < ranks; ++r)
    if (!victims.contains(r)) left.push_back(r);
  return left;
}

TEST_P(Survivors, of_any_number_carry_on) {
  for (int ranks = 2; ranks <= 8 && !HasFailure(); ++ranks) {
    const int victim = ranks % 3 == 0 ? 0 : ranks / 2;
    run(ranks, {victim}, [&](Communicator& world) {
      const int me = index(world.rank());
      reduce_until_failure(world, me == victim, ranks);
      Communicator left = carry_on(world);
      expect_ranks(left, me, all_but(ranks, {victim}));
      EXPECT_OK(left.destroy());
    });
  }
}

TEST_P(Survivors, of_two_deaths_at_once_carry_on) {
  const std::set<int> victims{0, 3};
  run(5, victims, [&](Communicator& world) {
    const int me = index(world.rank());
    reduce_until_failure(world, victims.contains(me), 10 + me);
    while (world.size() > 3) {  // each death may end a communicator
      world = carry_on(world);
      if (world.size() > 3) reduce_until_failure(world, victims.contains(me));
    }
    expect_ranks(world, me, all_but(5, victims));
  });
}

TEST_P(Survivors, of_a_death_in_a_shrink_carry_on) {
  const std::set<int> victims{1, 2};
  for (int round = 0; round < 12 && !HasFailure(); ++round)
    run(4, victims, [&](Communicator& world) {
      const int me = index(world.rank());
      reduce_until_failure(world, me == 2, 5);
      std::thread end([&] {
        if (me != 1) return;
        // So that each round ends at another place of a shrink; any place will do.
        // It dies at another moment of the others' call in each round.
        std::this_thread::sleep_for(std::chrono::microseconds(200 * round));
        ::raise(SIGKILL);
      });
      while (world.size() > 2) {
        world = carry_on(world);
        if (world.size() > 2) reduce_until_failure(world);
      }
      end.join();
      expect_ranks(world, me, all_but(4, victims));
    });
}

TEST_P(Survivors, carry_on_again_and_again) {
  constexpr int kRanks = 6;
  run(kRanks, {5, 0, 3, 4}, [&](Communicator& world) {
    const int me = index(world.rank());
    std::set<int> victims;
    for (const int next : {5, 0, 3, 4}) {
      reduce_until_failure(world, me == next, 4);
      victims.insert(next);
      world = carry_on(world);  // the one before is destroyed, and its links are needed on
      expect_ranks(world, me, all_but(kRanks, victims));
    }
  });
}

TEST_P(Survivors, of_a_group_carry_on_beside_other_groups) {
  run(6, {2}, [&](Communicator& world) {
    const int me = index(world.rank());
    auto made = world.split(me % 2, 0);
    ASSERT_TRUE(made.ok()) << made.status().message();
    Communicator group = std::move(*made);
    static_cast<void>(
        wait(world.barrier()));  // all have split; one that is late may hear of a failure
    if (me % 2 == 0) {           // 0, 2, 4
      reduce_until_failure(group, me == 2, 7);
      group = carry_on(group);
      expect_ranks(group, me, {0, 4});
    } else {
      expect_ranks(group, me, {1, 3, 5});
    }
    Communicator all = carry_on(world);  // of those that have not seen the death, too
    expect_ranks(all, me, {0, 1, 3, 4, 5});
    if (me % 2 == 1) expect_ranks(group, me, {1, 3, 5});
  });
}

TEST_P(Survivors, leave_out_a_silent_rank_by_name) {
  run(3, {}, [&](Communicator& world) {
    const int me = index(world.rank());
    Communicator copied = copy_of(world);
    if (me != 1) {
      world = carry_on(world, me == 0 ? std::vector<Rank>{Rank{1}} : std::vector<Rank>{});
      expect_ranks(world, me, {0, 2});
    }
    ASSERT_OK(wait(copied.barrier()));
    if (me == 1) {
      const auto refused = world.shrink({}, {}, ANYCCL_SHRINK_ABORT);
      EXPECT_EQ(refused.status().code(), Code::remote_error);
      EXPECT_TRUE(has_names(refused.status(), "does without this rank"))
          << refused.status().message();
    }
    ASSERT_OK(wait(copied.barrier()));
  });
}

/// Another communicator keeps its links.
TEST_P(Survivors, do_not_wait_for_a_rank_that_has_destroyed_the_communicator) {
  for (const bool knows_of_the_failure : {false, true})
    run(3, {}, [&](Communicator& world) {
      const int me = index(world.rank());
      Communicator copied = copy_of(world);
      if (me == 1 && knows_of_the_failure) {
        while (wait(world.recv({nullptr, 0, DType::f32}, Rank{0})).ok()) {
        }
      }
      if (me == 1) static_cast<void>(world.destroy());
      if (me == 1 || !knows_of_the_failure) ASSERT_OK(wait(copied.barrier()));
      if (me == 0) ASSERT_OK(world.revoke());
      if (me != 1) {
        const auto before = std::chrono::steady_clock::now();
        Communicator left = carry_on(world);
        expect_ranks(left, me, {0, 2});
        EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(10));
      }
      if (me != 1 && knows_of_the_failure) ASSERT_OK(wait(copied.barrier()));
      ASSERT_OK(wait(copied.barrier()));
    });
}

TEST_P(Survivors, name_a_rank_that_does_not_come_and_may_ask_again) {
  run(
      3, {},
      [&](Communicator& world) {
        const int me = index(world.rank());
        Communicator copied = copy_of(world);
        if (me != 1) {
          const auto late = world.shrink({}, {}, ANYCCL_SHRINK_ABORT);
          EXPECT_EQ(late.status().code(), Code::timeout);
          EXPECT_TRUE(has_names(late.status(), "rank 1 (")) << late.status().message();
        }
        ASSERT_OK(wait(copied.barrier()));
        for (Result<Communicator> all = Status(Code::timeout, ""); !all.ok();) {
          all = world.shrink({}, {}, ANYCCL_SHRINK_ABORT);  // a loaded machine takes its time
          if (all.ok()) expect_ranks(*all, me, {0, 1, 2});
          EXPECT_TRUE(all.ok() || all.status().code() == Code::timeout) << all.status().message();
        }
      },
      1);
}

/// A process that belongs to no communicator, until an id comes: then it joins as `rank` of `size`.
class Newcomer {
 public:
  using Body = std::function<void(anycclComm_t)>;
  Newcomer(const std::string& transport, int rank, int size, const Body& body) {
    EXPECT_EQ(::pipe(ends_), 0);
    process_ = ::fork();
    if (process_ == 0) be(transport, rank, size, body);
  }
  ~Newcomer() {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  Newcomer(const Newcomer&) = delete;
  Newcomer& operator=(const Newcomer&) = delete;

  /// In any process that was forked since.
  void invite(const anycclUniqueId& id) const {
    EXPECT_EQ(::write(ends_[1], &id, sizeof id), static_cast<ssize_t>(sizeof id));
  }
  /// -signal if it was killed.
  int exit_code() {
    ::close(ends_[1]);  // it waits for the id no longer
    int status = 0;
    EXPECT_EQ(::waitpid(process_, &status, 0), process_);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
  }

 private:
  [[noreturn]] void be(const std::string& transport, int rank, int size, const Body& body) const {
    ::close(ends_[1]);
    const Environment variables(Environment::Variables{{"ANYCCL_TRANSPORT", transport}});
    anycclUniqueId id;
    anycclComm_t made = nullptr;
    EXPECT_EQ(::read(ends_[0], &id, sizeof id), static_cast<ssize_t>(sizeof id));
    EXPECT_EQ(anycclCommGrow(ANYCCL_COMM_NULL, size, &id, rank, &made, nullptr), anycclSuccess)
        << anycclGetLastError(nullptr);
    if (!testing::Test::HasFailure()) body(made);
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }

  int ends_[2]{};
  pid_t process_ = -1;
};

/// Gives `mine`, and gets `expected`, in vectors of several sizes.
void expect_sum(anycclComm_t comm, float mine, float expected) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{100'000}, std::size_t{1}}) {
    std::vector<float> x(count, mine);
    ASSERT_EQ(anycclAllReduce(x.data(), x.data(), count, anycclFloat, anycclSum, comm, nullptr),
              anycclSuccess)
        << anycclGetLastError(nullptr);
    EXPECT_EQ(x, std::vector<float>(count, expected));
  }
}

/// `comm` and a newcomer behind its ranks.
anycclComm_t grow(Communicator& comm, const Newcomer& newcomer) {
  anycclUniqueId id;
  const bool first = comm.rank() == Rank{0};
  if (first) {
    EXPECT_EQ(anycclCommGetUniqueId(comm.handle(), &id), anycclSuccess);
    newcomer.invite(id);
  }
  anycclComm_t made = nullptr;
  EXPECT_EQ(
      anycclCommGrow(comm.handle(), comm.size() + 1, first ? &id : nullptr, -1, &made, nullptr),
      anycclSuccess)
      << anycclGetLastError(nullptr);
  return made;
}

TEST_P(Survivors, grow_by_a_new_process) {
  Newcomer newcomer(GetParam(), 3, 4, [](anycclComm_t comm) {
    expect_sum(comm, 100, 0 + 1 + 3 + 100);
    EXPECT_EQ(anycclCommDestroy(comm), anycclSuccess);
  });
  run(4, {2}, [&](Communicator& world) {
    const int me = index(world.rank());
    reduce_until_failure(world, me == 2, 6);
    world = carry_on(world);
    const anycclComm_t larger = grow(world, newcomer);
    ASSERT_NE(larger, nullptr);
    expect_sum(larger, static_cast<float>(me), 0 + 1 + 3 + 100);
    expect_ranks(world, me, {0, 1, 3});
    EXPECT_EQ(anycclCommDestroy(larger), anycclSuccess);
  });
  EXPECT_EQ(newcomer.exit_code(), 0);
}

TEST_P(Survivors, carry_on_without_a_new_process_that_dies) {
  Newcomer newcomer(GetParam(), 2, 3, [](anycclComm_t comm) {
    expect_sum(comm, 100, 1 + 2 + 100);
    float x = 0;  // after this all have their sums
    EXPECT_EQ(anycclAllReduce(&x, &x, 1, anycclFloat, anycclSum, comm, nullptr), anycclSuccess);
    ::raise(SIGKILL);
  });
  run(3, {0}, [&](Communicator& world) {
    const int me = index(world.rank());
    reduce_until_failure(world, me == 0, 6);
    world = carry_on(world);
    const anycclComm_t larger = grow(world, newcomer);
    ASSERT_NE(larger, nullptr);
    expect_sum(larger, static_cast<float>(me), 1 + 2 + 100);
    float x = 0;
    while (anycclAllReduce(&x, &x, 1, anycclFloat, anycclSum, larger, nullptr) == anycclSuccess) {
    }
    anycclComm_t left = nullptr;
    ASSERT_EQ(anycclCommShrink(larger, nullptr, 0, &left, nullptr, ANYCCL_SHRINK_ABORT),
              anycclSuccess)
        << anycclGetLastError(nullptr);
    expect_sum(left, static_cast<float>(me), 1 + 2);
    EXPECT_EQ(anycclCommDestroy(left), anycclSuccess);
    EXPECT_EQ(anycclCommDestroy(larger), anycclSuccess);
  });
  EXPECT_EQ(newcomer.exit_code(), -SIGKILL);
}

TEST_P(Survivors, know_what_all_of_them_have_completed) {
  run(4, {3}, [&](Communicator& world) {
    const int me = index(world.rank());
    const auto begun = world.completed();
    ASSERT_TRUE(begun.ok());
    std::vector<std::uint64_t> ends{begun->here};  // of each step
    Status status;
    for (int step = 0; status.ok(); ++step) {
      if (me == 3 && step == 9) ::raise(SIGKILL);
      float sum = 0;
      status = reduce(world, 1000, 1, sum);
      if (status.ok()) status = wait(world.barrier());
      if (status.ok()) ends.push_back(world.completed()->here);
    }
    EXPECT_EQ(world.completed()->everywhere, 0U);
    Communicator left = carry_on(world);
    const auto completed = world.completed();
    ASSERT_TRUE(completed.ok());
    EXPECT_LE(completed->everywhere, completed->here);
    EXPECT_GE(completed->everywhere, ends[0] + 2 * 8) << "a step is complete where the next began";
    std::vector<float> most{static_cast<float>(completed->everywhere)}, least = most;
    ASSERT_OK(wait(left.all_reduce(view(most), view(most), ReduceOp::max)));
    ASSERT_OK(wait(left.all_reduce(view(least), view(least), ReduceOp::min)));
    EXPECT_EQ(most, least);
    std::vector<float> here{static_cast<float>(completed->here)};
    ASSERT_OK(wait(left.all_reduce(view(here), view(here), ReduceOp::min)));
    EXPECT_EQ(here, most) << "the least of what any of them has completed";
  });
}

}  // namespace
}  // namespace anyccl::test
