// Measurements that ranks find by themselves: all ranks choose by the same.

#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/config.hpp"
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

}  // namespace
}  // namespace anyccl::test
