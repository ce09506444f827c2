// `anyccl blame`: the files it takes and what it prints.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/temporary_folder.hpp"
#include "tool.hpp"

namespace anyccl::cli {
namespace {

/// The dump of rank 0 of 2, which waits for rank 1 in a barrier.
constexpr const char* kDump = R"({"anyccl_dump": 1, "real_offset_ns": 0, "host": "n", "pid": 1,
  "communicator": "c", "name": "train", "rank": 0, "size": 2, "reason": "wait", "sequence": 1,
  "time_ns": 1, "peers": [],
  "entries": [{"number": 1, "sequence": 1, "kind": "barrier", "state": "running", "count": 0,
               "type": "i8", "issued_ns": 1000000}],
  "waits": [{"number": 1, "sequence": 1, "what": "step 1 of 1", "ranks": [1]}]})";

void write(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
}

TEST(BlameRun, takes_a_folder_and_passes_over_what_is_named_otherwise) {
  const test::TemporaryFolder folder;
  write(folder.path() + "/anyccl-c-0.json", kDump);
  write(folder.path() + "/notes", "no dump");
  Tool tool({"blame", folder.path()});
  EXPECT_EQ(tool.finish(), 0) << tool.err();
  EXPECT_NE(tool.out().find("Rank 1 of communicator train has written no dump"), std::string::npos)
      << tool.out();
}

TEST(BlameRun, prints_no_control_characters_of_a_dump) {
  const test::TemporaryFolder folder;
  std::string dump = kDump;
  dump.replace(dump.find("train"), 5, "tr\\u001b[2Jain");
  write(folder.path() + "/dump", dump);
  Tool tool({"blame", folder.path() + "/dump"});
  EXPECT_EQ(tool.finish(), 0) << tool.err();
  EXPECT_NE(tool.out().find("communicator tr?[2Jain"), std::string::npos) << tool.out();
}

TEST(BlameRun, prints_json) {
  const test::TemporaryFolder folder;
  write(folder.path() + "/dump", kDump);
  Tool tool({"blame", "--json", folder.path() + "/dump"});
  EXPECT_EQ(tool.finish(), 0) << tool.err();
  const auto answer = nlohmann::json::parse(tool.out());
  EXPECT_EQ(answer["kind"], "no_dump");
  EXPECT_EQ(answer["communicator"], "communicator train");
  EXPECT_EQ(answer["ranks"], std::vector<int>{1});
}

TEST(BlameRun, names_a_folder_that_is_called_like_a_dump) {
  const test::TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() + "/anyccl-c-0.json");
  Tool tool({"blame", folder.path()});
  EXPECT_EQ(tool.finish(), 2);
  EXPECT_NE(tool.err().find("anyccl-c-0.json: Is a directory"), std::string::npos) << tool.err();
}

TEST(BlameRun, names_a_file_that_is_no_dump_and_a_folder_without_any) {
  const test::TemporaryFolder folder;
  Tool empty({"blame", folder.path()});
  EXPECT_EQ(empty.finish(), 2);
  EXPECT_NE(empty.err().find("there are no files anyccl-*.json"), std::string::npos) << empty.err();
  write(folder.path() + "/other", "{}");
  Tool other({"blame", folder.path() + "/other"});
  EXPECT_EQ(other.finish(), 2);
  EXPECT_NE(other.err().find("/other: it is no dump"), std::string::npos) << other.err();
}

}  // namespace
}  // namespace anyccl::cli
