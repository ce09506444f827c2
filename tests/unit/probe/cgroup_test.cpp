#include "platform/probe/cgroup.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include "support/temporary_folder.hpp"

namespace anyccl::test {
namespace {

using namespace probe;

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

/// A temporary folder with cgroup files in it.
class CgroupFiles : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((folder_ / path).parent_path());
    std::ofstream(folder_ / path) << text << '\n';
  }
  std::string v2_mount(const std::string& root = "/", const std::string& point = "") const {
    return "30 23 0:26 " + root + " " + folder_.string() + point +
           " rw,nosuid shared:4 master:1 - cgroup2 cgroup2 rw,nsdelegate\n";
  }
  std::string v1_mount(const std::string& root = "/") const {
    return "33 31 0:30 " + root + " " + folder_.string() + " rw - cgroup cgroup rw,cpu,cpuacct\n";
  }

  TemporaryFolder temporary_;
  const std::filesystem::path folder_ = temporary_.path();
};
using CgroupQuota = CgroupFiles;
using CgroupMemory = CgroupFiles;

TEST_F(CgroupQuota, is_absent_without_cgroups) {
  EXPECT_EQ(cgroup_quota("", ""), kUnlimited);
  EXPECT_EQ(cgroup_quota("garbage\n::\n", "garbage\n - - \n"), kUnlimited);
}

TEST_F(CgroupQuota, of_version_2_is_quota_over_period) {
  write("job/cpu.max", "150000 100000");
  EXPECT_DOUBLE_EQ(cgroup_quota("0::/job\n", v2_mount()), 1.5);
}

TEST_F(CgroupQuota, of_version_2_max_is_no_limit) {
  write("job/cpu.max", "max 100000");
  EXPECT_EQ(cgroup_quota("0::/job\n", v2_mount()), kUnlimited);
}

TEST_F(CgroupQuota, of_version_1_is_quota_over_period) {
  write("job/cpu.cfs_quota_us", "250000");
  write("job/cpu.cfs_period_us", "50000");
  EXPECT_DOUBLE_EQ(cgroup_quota("4:cpu,cpuacct:/job\n0::/\n", v1_mount()), 5.0);
}

TEST_F(CgroupQuota, of_version_1_minus_one_is_no_limit) {
  write("job/cpu.cfs_quota_us", "-1");
  write("job/cpu.cfs_period_us", "100000");
  EXPECT_EQ(cgroup_quota("4:cpu:/job\n", v1_mount()), kUnlimited);
}

TEST_F(CgroupQuota, is_the_least_on_the_way_up) {
  write("cpu.max", "max 100000");
  write("pod/cpu.max", "200000 100000");
  write("pod/box/cpu.max", "800000 100000");
  write("pod/box/leaf/cpu.max", "max 100000");
  write("other/cpu.max", "1000 100000");
  EXPECT_DOUBLE_EQ(cgroup_quota("0::/pod/box/leaf\n", v2_mount()), 2.0);
}

TEST_F(CgroupQuota, counts_at_the_root_of_a_container) {
  write("cpu.max", "300000 100000");
  EXPECT_DOUBLE_EQ(cgroup_quota("0::/\n", v2_mount()), 3.0);
}

TEST_F(CgroupQuota, is_found_where_only_the_own_part_is_mounted) {
  write("cpu.cfs_quota_us", "100000");
  write("cpu.cfs_period_us", "100000");
  write("leaf/cpu.cfs_quota_us", "50000");
  write("leaf/cpu.cfs_period_us", "100000");
  EXPECT_DOUBLE_EQ(cgroup_quota("4:cpu:/docker/abc\n", v1_mount("/docker/abc")), 1.0);
  EXPECT_DOUBLE_EQ(cgroup_quota("4:cpu:/docker/abc/leaf\n", v1_mount("/docker/abc")), 0.5);
}

TEST_F(CgroupQuota, of_a_name_that_only_begins_alike_is_not_taken) {
  write("d/cpu.max", "100000 100000");
  EXPECT_EQ(cgroup_quota("0::/job/abcd\n", v2_mount("/job/abc")), kUnlimited);
}

TEST_F(CgroupQuota, is_found_in_paths_with_spaces_and_colons) {
  write("with space/a:b/cpu.max", "400000 100000");
  EXPECT_DOUBLE_EQ(cgroup_quota("0::/a:b\n", v2_mount("/", "/with\\040space")), 4.0);
}

TEST_F(CgroupQuota, is_the_lesser_of_both_versions) {
  write("cpu.cfs_quota_us", "300000");
  write("cpu.cfs_period_us", "100000");
  write("unified/cpu.max", "200000 100000");
  EXPECT_DOUBLE_EQ(cgroup_quota("4:cpu:/\n0::/\n", v1_mount() + v2_mount("/", "/unified")), 2.0);
}

TEST_F(CgroupQuota, of_another_controller_is_not_taken) {
  write("cpu.cfs_quota_us", "100000");
  write("cpu.cfs_period_us", "100000");
  const std::string cpuset = "33 31 0:30 / " + folder_.string() + " rw - cgroup cgroup rw,cpuset\n";
  EXPECT_EQ(cgroup_quota("4:cpu:/\n3:cpuset:/\n", cpuset), kUnlimited);
}

TEST_F(CgroupQuota, of_a_path_that_does_not_begin_at_the_root_is_not_taken) {
  write("cpu.max", "100000 100000");
  EXPECT_EQ(cgroup_quota("0::job\n", v2_mount()), kUnlimited);
}

TEST_F(CgroupQuota, of_a_folder_in_the_place_of_a_file_is_none) {
  write("cpu.max/file", "100000 100000");
  EXPECT_EQ(cgroup_quota("0::/\n", v2_mount()), kUnlimited);
}

TEST_F(CgroupMemory, left_is_all_of_it_without_cgroups) {
  EXPECT_EQ(cgroup_memory_left("", ""), kUnlimited);
  EXPECT_EQ(cgroup_memory_left("0::/\n", v2_mount()), kUnlimited);
}

TEST_F(CgroupMemory, left_of_version_2_counts_pages_of_files_as_free) {
  write("job/memory.max", "1000000");
  write("job/memory.current", "600000");
  write("job/memory.stat", "anon 1\ninactive_file 20000\nactive_file 3000\nshmem 500000");
  EXPECT_DOUBLE_EQ(cgroup_memory_left("0::/job\n", v2_mount()), 423000);
}

TEST_F(CgroupMemory, left_is_the_least_on_the_way_up_and_never_negative) {
  write("memory.max", "1000");
  write("memory.current", "1500");
  write("job/memory.max", "max");
  write("job/memory.current", "700");
  EXPECT_DOUBLE_EQ(cgroup_memory_left("0::/job\n", v2_mount()), 0);
}

TEST_F(CgroupMemory, left_of_version_1_counts_those_below_it) {
  write("job/memory.limit_in_bytes", "5000");
  write("job/memory.usage_in_bytes", "4000");
  write("job/memory.stat", "inactive_file 1\ntotal_inactive_file 100\ntotal_active_file 20");
  const std::string mount = "33 31 0:30 / " + folder_.string() + " rw - cgroup cgroup rw,memory\n";
  EXPECT_DOUBLE_EQ(cgroup_memory_left("4:memory:/job\n0::/\n", mount), 1120);
}

}  // namespace
}  // namespace anyccl::test
