// `anyccl tune`, and what other verbs say afterwards.

#include <gtest/gtest.h>
#include <stdlib.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "support/temporary_folder.hpp"
#include "tool.hpp"

namespace anyccl::cli {
namespace {

namespace fs = std::filesystem;

/// With a cache folder of its own.
class Tune : public testing::Test {
 protected:
  Tune() {
    ::unsetenv("ANYCCL_TUNER_TABLE");
    ::setenv("XDG_CACHE_HOME", folder_.path().c_str(), 1);
  }

  std::vector<std::string> tables() const {
    std::vector<std::string> names;
    if (fs::exists(folder_.path() + "/anyccl"))
      for (const auto& entry : fs::directory_iterator(folder_.path() + "/anyccl"))
        names.push_back(entry.path());
    return names;
  }

  test::TemporaryFolder folder_;
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(Tune, writes_a_table_that_the_next_start_chooses_by) {
  Tool tool({"tune", "all_reduce", "barrier", "--ranks", "2", "--seconds", "60", "-e", "512"});
  ASSERT_EQ(tool.finish(), 0) << tool.err();
  ASSERT_EQ(tables().size(), 1U);
  const std::string file = tables()[0];
  EXPECT_TRUE(has(tool.out(), file)) << tool.out();
  EXPECT_TRUE(has(tool.out(), " of 4 places ")) << tool.out();  // 8, 64 and 512 bytes, a barrier
  EXPECT_TRUE(has(tool.err(), " left: 2 ranks, ")) << tool.err();

  Tool explain({"explain", "all_reduce", "-n", "2", "--bytes", "64", "--json"});
  ASSERT_EQ(explain.finish(), 0) << explain.err();
  const auto answer = nlohmann::json::parse(explain.out());
  EXPECT_TRUE(has(answer["reason"], file)) << answer["reason"];
  for (const auto& candidate : answer["candidates"])
    EXPECT_EQ(candidate["measured_us"].is_number(), candidate["possible"].get<bool>()) << candidate;
  Tool info({"info"});
  ASSERT_EQ(info.finish(), 0);
  EXPECT_TRUE(has(info.out(), "chosen by measurements in " + file)) << info.out();
}

TEST_F(Tune, writes_where_it_is_told_to) {
  const std::string file = folder_.path() + "/here.json";
  Tool tool({"tune", "barrier", "--ranks", "2,3", "--seconds", "1", "--output", file});
  ASSERT_EQ(tool.finish(), 0) << tool.err();
  EXPECT_TRUE(fs::exists(file));
  EXPECT_TRUE(has(tool.out(), "ANYCCL_TUNER_TABLE=" + file)) << tool.out();
  EXPECT_TRUE(tables().empty());
}

TEST_F(Tune, leaves_nothing_when_it_is_interrupted) {
  Tool tool({"tune", "--ranks", "2", "--seconds", "60"});
  ASSERT_TRUE(tool.says(" left: 2 ranks, ")) << tool.err();
  tool.signal(SIGINT);
  EXPECT_EQ(tool.finish(), 128 + SIGINT);
  EXPECT_TRUE(has(tool.err(), "nothing was written")) << tool.err();
  EXPECT_TRUE(tables().empty());
}

TEST_F(Tune, says_what_is_wrong) {
  for (const auto& [arguments, words] :
       std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"tune", "magic"}, "magic"},
           {{"tune", "--ranks", "1"}, "--ranks"},
           {{"tune", "-b", "many"}, "'many' is not a size"},
           {{"tune", "-o", "/dev/null/table.json"}, "/dev/null"}}) {
    Tool tool(arguments);
    EXPECT_NE(tool.finish(), 0);
    EXPECT_TRUE(has(tool.err(), words)) << tool.err();
  }
  ::setenv("RANK", "0", 1);
  Tool rank({"tune"});
  ::unsetenv("RANK");
  EXPECT_EQ(rank.finish(), 2);
  EXPECT_TRUE(has(rank.err(), "starts its ranks itself")) << rank.err();
}

}  // namespace
}  // namespace anyccl::cli
