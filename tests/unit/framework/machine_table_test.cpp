// Which file of measurements a start takes by itself.

#include "framework/tuning/machine_table.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "support/temporary_folder.hpp"

namespace anyccl {
namespace {

constexpr const char* kRow =
    R"([{"algorithm":"all_reduce/ring","protocol":"LL","transport":"shm","ranks":2,"bytes":8,)"
    R"("median_us":1.5,"inplace":false}])";

class MachineTable : public testing::Test {
 protected:
  std::string with(const std::string& text, mode_t mode = 0600) const {
    std::string file = folder_.path() + "/table.json";
    std::ofstream(file) << text;
    EXPECT_EQ(::chmod(file.c_str(), mode), 0);
    return file;
  }
  static void expect_refusal(const std::string& file, Code code, const char* words) {
    const Status status = read_machine_table(file).status();
    EXPECT_EQ(status.code(), code) << status.message();
    EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
    EXPECT_NE(status.message().find(file), std::string::npos) << status.message();
  }

  test::TemporaryFolder folder_;
};

TEST_F(MachineTable, is_in_the_cache_folder_and_named_by_the_machine) {
  const std::string file = machine_table_file("/var/cache/me");
  EXPECT_TRUE(file.starts_with("/var/cache/me/anyccl/tuned-")) << file;
  EXPECT_EQ(machine_table_file("/var/cache/me"), file);
  EXPECT_EQ(machine_table_file(""), "") << "there is no such folder";
}

TEST_F(MachineTable, may_be_missing) {
  const auto table = read_machine_table(folder_.path() + "/none.json");
  ASSERT_TRUE(table.ok()) << table.status().message();
  EXPECT_EQ(*table, nullptr);
}

TEST_F(MachineTable, is_read_if_only_its_owner_can_have_written_it) {
  for (const mode_t mode : {0600U, 0644U, 0444U}) {
    const auto table = read_machine_table(with(kRow, mode));
    ASSERT_TRUE(table.ok()) << table.status().message();
    const Algorithm& ring = *find_algorithm(Collective::all_reduce, "ring");
    EXPECT_EQ((*table)->measured_us(ring, {{.collective = Collective::all_reduce, .size = 2}, 8}),
              1.5);
    std::filesystem::remove_all(folder_.path() + "/table.json");
  }
  for (const mode_t mode : {0620U, 0602U})
    expect_refusal(with(kRow, mode), Code::invalid_usage, "other users may write");
}

TEST_F(MachineTable, must_belong_to_the_user) {
  if (::geteuid() == 0) {
    const std::string file = with(kRow);
    ASSERT_EQ(::chown(file.c_str(), 12345, 12345), 0);
    expect_refusal(file, Code::invalid_usage, "belongs to user 12345");
  } else {
    expect_refusal("/etc/hostname", Code::invalid_usage, "belongs to user 0");
  }
}

TEST_F(MachineTable, that_is_broken_is_an_error_that_says_what_to_do) {
  expect_refusal(with("[{\"algorithm\":"), Code::invalid_argument, "`anyccl tune`");
  expect_refusal(with("[{}]"), Code::invalid_argument, "row 0");
  expect_refusal(folder_.path(), Code::invalid_usage, "is not a file");
}

}  // namespace
}  // namespace anyccl
