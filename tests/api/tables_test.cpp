// Measurements that ranks find by themselves, or make at the start: all ranks choose by the same.

#include <stdlib.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "adapter/c/handle.hpp"
#include "base/config.hpp"
#include "framework/communicator/tune_at_start.hpp"
#include "framework/tuning/machine_table.hpp"
#include "support/ranks.hpp"
#include "support/temporary_folder.hpp"

namespace anyccl::test {
namespace {

using Variables = Environment::Variables;

std::string plan_of(Communicator& comm, std::size_t elements) {
  std::vector<float> x(elements, 1.0F);
  const Status status = wait(comm.all_reduce(view(x), view(x), ReduceOp::sum));
  if (!status.ok()) return std::string(status.message());
  const char* plan = nullptr;
  EXPECT_EQ(anycclCommLastPlan(comm.handle(), &plan), anycclSuccess);
  return std::string(plan);
}

/// Two cache folders, in which `algorithm` is the fastest, or nothing is.
class Tables : public testing::Test {
 protected:
  Tables() { ::unsetenv("ANYCCL_TUNER_TABLE"); }

  std::string cache(int rank) const { return folder_.path() + "/" + std::to_string(rank); }
  std::string file(int rank) const { return machine_table_file(cache(rank)); }
  void write(int rank, const std::string& text) const {
    std::filesystem::create_directories(cache(rank) + "/anyccl");
    std::ofstream(file(rank)) << text;
    EXPECT_EQ(::chmod(file(rank).c_str(), 0600), 0);
  }
  static std::string with_fastest(const std::string& algorithm) {
    const auto row = [](const std::string& name, int us) {
      return R"({"algorithm":"all_reduce/)" + name +
             R"(","protocol":"LL","transport":"shm","ranks":2,"bytes":8,"inplace":false,)" +
             R"("median_us":)" + std::to_string(us) + "}";
    };
    return "[" + row(algorithm, 1) + "," + row("one_shot", 5) + "]";
  }
  /// What an AllReduce of 8 bytes is done by, on both ranks.
  std::string chosen(const Variables& more = {}) const {
    const auto outcomes = run_processes(
        2, [](Communicator& comm) { say(plan_of(comm, 2)); },
        [&](int rank) {
          Variables variables = more;
          variables.emplace_back("XDG_CACHE_HOME", cache(rank));
          return variables;
        });
    expect_all_passed(outcomes);
    EXPECT_EQ(outcomes[0].output, outcomes[1].output);
    return outcomes[0].output;
  }

  TemporaryFolder folder_;
};

TEST_F(Tables, of_the_machine_decide_if_all_ranks_have_the_same) {
  for (const int rank : {0, 1}) write(rank, with_fastest("ring"));
  EXPECT_EQ(chosen(), "all_reduce/ring LL shm");
}

TEST_F(Tables, of_the_machine_that_differ_are_left_alone) {
  write(0, with_fastest("ring"));
  write(1, with_fastest("circulant"));
  EXPECT_EQ(chosen(), "all_reduce/one_shot LL shm");
}

TEST_F(Tables, of_the_machine_that_one_rank_does_not_have_are_left_alone) {
  write(1, with_fastest("ring"));
  EXPECT_EQ(chosen(), "all_reduce/one_shot LL shm");
}

TEST_F(Tables, of_the_machine_that_are_broken_are_left_alone) {
  for (const int rank : {0, 1}) write(rank, "[{");
  EXPECT_EQ(chosen(), "all_reduce/one_shot LL shm");
}

TEST_F(Tables, of_the_machine_give_way_to_what_the_user_names) {
  for (const int rank : {0, 1}) write(rank, with_fastest("ring"));
  EXPECT_EQ(chosen({{"ANYCCL_TUNER_TABLE", "none"}}), "all_reduce/one_shot LL shm");
  EXPECT_EQ(chosen({{"ANYCCL_ALGO", "circulant"}}), "all_reduce/circulant LL shm");
  const std::string mine = folder_.path() + "/mine.json";
  std::ofstream(mine) << with_fastest("two_shot");
  EXPECT_EQ(chosen({{"ANYCCL_TUNER_TABLE", mine}}), "all_reduce/two_shot LL shm");
}

TEST_F(Tables, of_the_machine_come_before_what_is_measured_at_the_start) {
  for (const int rank : {0, 1}) write(rank, with_fastest("ring"));
  EXPECT_EQ(chosen({{"ANYCCL_TUNE_AT_START", "1"}}), "all_reduce/ring LL shm");
}

/// The plans of some sizes, or why there are none.
std::string plans_of(Communicator& comm) {
  std::string plans;
  for (const std::size_t elements : {2UL, 1000UL, 20000UL, 300000UL})
    plans += plan_of(comm, elements) + ";";
  return plans;
}

class AtStart : public testing::TestWithParam<std::tuple<int, std::string>> {};

TEST_P(AtStart, all_ranks_come_to_the_same_choices) {
  const auto [ranks, transport] = GetParam();
  const Variables variables = {{"ANYCCL_TUNE_AT_START", "1"}, {"ANYCCL_TRANSPORT", transport}};
  const auto outcomes = run_processes(
      ranks, [](Communicator& comm) { say(plans_of(comm)); }, [&](int) { return variables; });
  expect_all_passed(outcomes);
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.output, outcomes[0].output);
}
INSTANTIATE_TEST_SUITE_P(All, AtStart,
                         testing::Combine(testing::Values(2, 3), testing::Values("shm", "tcp")),
                         [](const auto& test) {
                           return std::get<1>(test.param) + "_" +
                                  std::to_string(std::get<0>(test.param));
                         });

TEST(AtStart, threads_and_splits_are_measured_too) {
  const Environment environment(Variables{{"ANYCCL_TUNE_AT_START", "1"}});
  run_ranks(3, [](Communicator& comm) {
    const char* plan = nullptr;
    EXPECT_EQ(anycclCommLastPlan(comm.handle(), &plan), anycclSuccess);
    EXPECT_STREQ(plan, "") << "nothing of the measurements shows";
    auto half = comm.split(index(comm.rank()) % 2, 0);
    ASSERT_TRUE(half.ok()) << half.status().message();
    EXPECT_EQ(plan_of(*half, 1000).rfind("all_reduce/", 0), 0U);
  });
}

TEST(AtStart, one_rank_alone_has_nothing_to_measure) {
  const Environment environment(Variables{{"ANYCCL_TUNE_AT_START", "1"}});
  run_ranks(1, [](Communicator& comm) { EXPECT_EQ(comm.handle()->comm->sequence(), 0U); });
}

TEST(AtStart, a_rank_that_dies_meanwhile_is_named_by_the_others) {
  const auto outcomes = run_processes(3, [](Communicator& comm) {
    ASSERT_OK(wait(comm.barrier()));
    if (comm.rank() == Rank{2}) ::raise(SIGKILL);
    const Status status =
        tune_at_start(*comm.handle()->comm, Deadline::in(std::chrono::seconds(20)));
    EXPECT_EQ(status.code(), Code::remote_error) << status.message();
    EXPECT_NE(status.message().find("rank 2"), std::string::npos) << status.message();
  });
  for (int r = 0; r < 3; ++r)
    EXPECT_EQ(outcomes[static_cast<std::size_t>(r)].exit_code, r == 2 ? -SIGKILL : 0)
        << outcomes[static_cast<std::size_t>(r)].output;
}

TEST(AtStart, must_be_asked_for_by_all_ranks) {
  const auto outcomes = run_processes(
      2, [](Communicator&) {},
      [](int rank) {
        return Variables{{"ANYCCL_TUNE_AT_START", std::to_string(rank)}};
      });
  for (const Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.exit_code, 3);
    EXPECT_NE(outcome.output.find("ANYCCL_TUNE_AT_START"), std::string::npos) << outcome.output;
  }
}

}  // namespace
}  // namespace anyccl::test
