// `anyccl trace`: the files it takes and what it prints and writes.

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "support/temporary_folder.hpp"
#include "tool.hpp"

namespace anyccl::cli {
namespace {

using Json = nlohmann::json;

/// The trace of rank 0 of 1 that was in a barrier for 5 of 10 us.
constexpr const char* kTrace = R"({"otherData": {"anyccl_trace": 1, "host": "n", "pid": 1,
  "communicator": "c", "name": "train", "rank": 0, "size": 1, "time_ns": 11000,
  "real_offset_ns": 0, "left_out": 2},
  "traceEvents": [
  {"name": "barrier", "ph": "X", "tid": 1, "args": {"kind": "barrier", "bytes": 0, "sequence": 3,
   "issued_ns": 1000, "started_ns": 1000, "awaited_ns": 1000, "ended_ns": 3000}},
  {"name": "barrier", "ph": "X", "tid": 1, "args": {"kind": "barrier", "bytes": 0, "sequence": 4,
   "issued_ns": 8000, "started_ns": 8000, "awaited_ns": 8000, "ended_ns": 11000}},
  {"name": "process_name", "ph": "M"}]})";

void write(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
}

TEST(TraceRun, summary_takes_a_folder_and_passes_over_what_is_named_otherwise) {
  const test::TemporaryFolder folder;
  write(folder.path() + "/trace-c-0.json", kTrace);
  write(folder.path() + "/anyccl-c-0.json", "a dump");
  Tool tool({"trace", "summary", folder.path()});
  EXPECT_EQ(tool.finish(), 0) << tool.err();
  for (const char* part : {"rank 0 (host n, pid 1)", "Ranks waited for communication 50.0 %",
                           "2 operations were forgotten"})
    EXPECT_NE(tool.out().find(part), std::string::npos) << tool.out();
}

TEST(TraceRun, merge_writes_a_timeline) {
  const test::TemporaryFolder folder;
  const std::string input = folder.path() + "/trace", output = folder.path() + "/timeline.json";
  write(input, kTrace);
  Tool tool({"trace", "merge", input, "-o", output});
  EXPECT_EQ(tool.finish(), 0) << tool.err();
  std::ifstream file(output);
  const Json timeline = Json::parse(file);
  EXPECT_EQ(timeline.at("traceEvents").size(), 4U) << timeline;
}

TEST(TraceRun, prints_the_summary_as_json) {
  const test::TemporaryFolder folder;
  write(folder.path() + "/trace-c-0.json", kTrace);
  Tool tool({"trace", "summary", folder.path(), "--json"});
  ASSERT_EQ(tool.finish(), 0) << tool.err();
  const Json json = Json::parse(tool.out());
  EXPECT_EQ(json.at("operations").at(0).at("kind"), "barrier");
  EXPECT_EQ(json.at("ranks").size(), 1U);
}

TEST(TraceRun, refuses_what_is_no_trace) {
  const test::TemporaryFolder folder;
  Tool empty({"trace", "summary", folder.path()});
  EXPECT_EQ(empty.finish(), 2);
  EXPECT_NE(empty.err().find("there are no files trace-*.json"), std::string::npos) << empty.err();
  for (const char* text : {"{}", "[", R"({"otherData": 1})",
                           R"({"otherData": {"anyccl_trace": 1}, "traceEvents": []})"}) {
    write(folder.path() + "/other", text);
    Tool other({"trace", "summary", folder.path() + "/other"});
    EXPECT_EQ(other.finish(), 2) << text;
    EXPECT_NE(other.err().find("/other: it is no trace"), std::string::npos) << other.err();
  }
}

TEST(TraceRun, refuses_two_traces_of_one_rank) {
  const test::TemporaryFolder folder;
  const std::string input = folder.path() + "/trace-c-0.json";
  write(input, kTrace);
  Tool tool({"trace", "summary", folder.path(), input});
  EXPECT_EQ(tool.finish(), 2);
  EXPECT_NE(tool.err().find("the trace of rank 0 of communicator train is there twice"),
            std::string::npos)
      << tool.err();
}

TEST(TraceRun, needs_to_know_what_to_do) {
  Tool tool({"trace", "somewhere"});
  EXPECT_EQ(tool.finish(), 2);
}

}  // namespace
}  // namespace anyccl::cli
