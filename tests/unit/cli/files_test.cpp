// Files that are complete or not there, and how progress is shown.

#include "perf/files.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "perf/progress.hpp"

namespace anyccl::cli {
namespace {

namespace fs = std::filesystem;

std::string text_of(const std::string& file) {
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

std::size_t files_in(const std::string& folder) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST(PendingFile, replaces_what_was_there_only_when_it_is_committed) {
  const auto folder = TemporaryFolder::create();
  ASSERT_TRUE(folder.ok());
  const std::string file = folder->path() + "/new/folder/file";
  {
    auto pending = PendingFile::create(file);
    ASSERT_TRUE(pending.ok()) << pending.status().message();
    EXPECT_TRUE(pending->commit("first").ok());
  }
  EXPECT_EQ(text_of(file), "first");
  EXPECT_EQ(fs::status(file).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_TRUE(PendingFile::create(file).ok());
  EXPECT_EQ(text_of(file), "first");
  EXPECT_EQ(files_in(folder->path() + "/new/folder"), 1U) << "nothing else is left";
}

TEST(PendingFile, says_where_it_cannot_be) {
  const Status status = PendingFile::create("/dev/null/table.json").status();
  EXPECT_EQ(status.code(), Code::system_error);
  EXPECT_NE(status.message().find("/dev/null"), std::string::npos) << status.message();
}

TEST(Progress, shows_a_bar_and_the_time_that_is_left) {
  EXPECT_EQ(progress_text(0, 120, "first"), "[--------------------]   0 %, 2:00 left: first");
  EXPECT_EQ(progress_text(0.555, 61.2, "next"), "[###########---------]  55 %, 1:02 left: next");
  EXPECT_EQ(progress_text(1, 0, "last"), "[####################] 100 %, 0:00 left: last");
}

}  // namespace
}  // namespace anyccl::cli
