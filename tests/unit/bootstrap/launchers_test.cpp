// What other launchers say about a rank.

#include "base/launchers.hpp"

#include <gtest/gtest.h>

#include <map>

namespace anyccl {
namespace {

using Variables = std::map<std::string, std::string, std::less<>>;

Result<std::optional<Launch>> found(const Variables& variables) {
  return find_launch([&](std::string_view name) -> std::optional<std::string> {
    const auto at = variables.find(name);
    return at == variables.end() ? std::nullopt : std::optional(at->second);
  });
}

const Variables kMpirun{{"OMPI_COMM_WORLD_RANK", "2"},
                        {"OMPI_COMM_WORLD_SIZE", "4"},
                        {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                        {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                        {"PMIX_NAMESPACE", "1234"}};
const Variables kHydra{{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALNRANKS", "2"}};
const Variables kSrun{{"SLURM_PROCID", "5"},
                      {"SLURM_STEP_NUM_TASKS", "6"},
                      {"SLURM_STEP_NUM_NODES", "3"},
                      {"SLURM_JOB_ID", "77"},
                      {"SLURM_STEP_ID", "0"},
                      {"SLURM_STEP_NODELIST", "node[03-05]"},
                      {"SLURM_STEP_TASKS_PER_NODE", "3,1,2"}};

Variables with(Variables base, const Variables& more) {
  for (const auto& [name, value] : more) base[name] = value;
  return base;
}

Variables without(Variables base, const std::string& name) {
  base.erase(name);
  return base;
}

TEST(Launchers, of_which_none_has_started_this_process_are_no_error) {
  EXPECT_EQ(*found({}), std::nullopt);
}

TEST(Launchers, mpirun_names_rank_size_and_job) {
  const Launch launch = **found(kMpirun);
  EXPECT_EQ(launch.rank, 2);
  EXPECT_EQ(launch.size, 4);
  EXPECT_TRUE(launch.one_host);
  EXPECT_NE(launch.job, (**found(with(kMpirun, {{"PMIX_NAMESPACE", "1235"}}))).job);
  EXPECT_FALSE((**found(with(kMpirun, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}))).one_host);
}

TEST(Launchers, hydra_names_rank_and_size_and_its_process_the_job) {
  const Launch launch = **found(kHydra);
  EXPECT_EQ(launch.rank, 1);
  EXPECT_EQ(launch.size, 2);
  EXPECT_TRUE(launch.one_host);
  EXPECT_EQ(launch.job, (**found(with(kHydra, {{"PMI_RANK", "0"}}))).job);
}

TEST(Launchers, srun_names_the_first_host_too) {
  const Launch launch = **found(kSrun);
  EXPECT_EQ(launch.rank, 5);
  EXPECT_EQ(launch.size, 6);
  EXPECT_FALSE(launch.one_host);
  EXPECT_EQ(launch.first_host, "node03");
  EXPECT_TRUE((**found(with(kSrun, {{"SLURM_STEP_NUM_NODES", "1"}}))).one_host);
}

TEST(Launchers, a_batch_script_of_slurm_is_no_rank) {
  EXPECT_EQ(*found({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}, {"SLURM_JOB_ID", "77"}}),
            std::nullopt);
}

TEST(Launchers, mpirun_and_hydra_count_where_srun_has_started_their_daemons) {
  EXPECT_EQ((**found(with(kSrun, kMpirun))).size, 4);
  EXPECT_EQ((**found(with(kSrun, kHydra))).size, 2);
}

TEST(Launchers, that_say_only_a_part_are_passed_over) {
  for (const auto& [name, value] : kHydra)
    EXPECT_EQ((**found(with(kSrun, without(kHydra, name)))).size, 6) << name;
}

TEST(Launchers, whose_numbers_are_none_are_named) {
  for (const char* text : {"", "x", "-1", "3x"})
    EXPECT_EQ(found(with(kHydra, {{"PMI_RANK", text}})).status().message(),
              std::string("PMI_RANK=") + text + " is not a number from 0 on");
  EXPECT_EQ(found(with(kHydra, {{"PMI_RANK", "2"}})).status().message(),
            "PMI_RANK=2 is not in a job of PMI_SIZE=2 ranks");
}

TEST(FirstHost, is_that_of_a_plain_or_folded_list) {
  EXPECT_EQ(first_host_of(""), "");
  EXPECT_EQ(first_host_of("a"), "a");
  EXPECT_EQ(first_host_of("a,b"), "a");
  EXPECT_EQ(first_host_of("node[03-05,9],other"), "node03");
  EXPECT_EQ(first_host_of("node[7]"), "node7");
  EXPECT_EQ(first_host_of("rack[0-1]node[2,3]-x,y"), "rack0node2-x");
  EXPECT_EQ(first_host_of("broken[03"), "broken03");
}

TEST(PortOfJob, is_the_same_for_all_ranks_and_below_ephemeral_ones) {
  const Launch launch = **found(kSrun);
  EXPECT_EQ(port_of_job(launch), port_of_job(**found(with(kSrun, {{"SLURM_PROCID", "0"}}))));
  EXPECT_GE(port_of_job(launch), 10000);
  EXPECT_LT(port_of_job(launch), 30000);
}

}  // namespace
}  // namespace anyccl
