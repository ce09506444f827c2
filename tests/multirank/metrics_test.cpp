// What ranks have done is in their metrics: anycclCommMetrics, anycclMetrics, ANYCCL_METRICS.

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <thread>

#include "support/ranks.hpp"
#include "support/temporary_folder.hpp"

namespace anyccl::test {
namespace {

using Json = nlohmann::json;
using Variables = Environment::Variables;

Status reduce(Communicator& comm, std::size_t count = 2) {
  std::vector<float> x(count, 1.0F);
  return wait(comm.all_reduce(view(x), view(x), ReduceOp::sum));
}

Json metrics_of(const Communicator& comm) {
  const auto text = comm.metrics();
  EXPECT_OK(text.status());
  return text.ok() ? Json::parse(*text) : Json();
}

/// Over all its algorithms and protocols.
std::uint64_t sum(const Json& metrics, const char* operation, const char* field) {
  std::uint64_t sum = 0;
  for (const Json& row : metrics.at("operations"))
    if (row.at("operation") == operation) sum += row.at(field).get<std::uint64_t>();
  return sum;
}

TEST(Metrics, count_operations_bytes_and_time_by_algorithm_and_protocol) {
  constexpr int kCalls = 3000;  // more than are remembered
  run_ranks(2, [&](Communicator& comm) {
    for (int i = 0; i < kCalls; ++i) ASSERT_OK(reduce(comm));
    ASSERT_OK(reduce(comm, 1 << 20));
    const Rank other{1 - index(comm.rank())};
    std::vector<float> x(3, 1.0F), y(3);
    auto sent = comm.send(view(x), other);
    ASSERT_OK(wait(comm.recv(view(y), other)));
    ASSERT_OK(wait(std::move(sent)));
    const Json metrics = metrics_of(comm);
    EXPECT_EQ(metrics.at("rank"), index(comm.rank()));
    EXPECT_EQ(metrics.at("completed"), kCalls + 1);
    EXPECT_EQ(metrics.at("failed"), false);
    EXPECT_GT(metrics.at("memory_bytes"), 0);
    EXPECT_EQ(sum(metrics, "all_reduce", "calls"), kCalls + 1U);
    EXPECT_EQ(sum(metrics, "all_reduce", "bytes"), 8U * kCalls + (4U << 20));
    EXPECT_EQ(sum(metrics, "send", "bytes"), 12U);
    EXPECT_EQ(sum(metrics, "recv", "calls"), 1U);
    double seconds = 0;
    for (const Json& row : metrics.at("operations")) {
      EXPECT_EQ(row.at("algorithm") == "", row.at("operation") != "all_reduce") << row;
      EXPECT_EQ(row.at("protocol") == "", row.at("operation") != "all_reduce") << row;
      seconds += row.at("seconds").get<double>();
    }
    EXPECT_GT(seconds, 0);
    EXPECT_LT(seconds, 1000);
  });
}

/// It has no count of its own: what a rank sends is counted.
TEST(Metrics, count_the_bytes_of_blocks_of_different_sizes) {
  run_ranks(2, [&](Communicator& comm) {
    std::vector<std::int32_t> in(20), out(20);
    for (const std::size_t most : {3U, 5U}) {
      const auto me = static_cast<std::size_t>(index(comm.rank()));
      const std::vector<std::size_t> counts{me, most}, displs{0, 10};
      const std::vector<std::size_t> from(2, me == 0 ? 0 : most), to{0, 10};
      const std::vector<std::size_t> sent = me == 0 ? counts : std::vector<std::size_t>{1, most};
      const std::vector<std::size_t> got =
          me == 0 ? std::vector<std::size_t>{0, 1} : std::vector<std::size_t>{most, most};
      ASSERT_EQ(anycclAllToAllv(in.data(), sent.data(), displs.data(), out.data(), got.data(),
                                to.data(), anycclInt32, comm.handle(), nullptr),
                anycclSuccess);
    }
    const std::uint64_t all = comm.rank() == Rank{0} ? 3 + 5 : 1 + 3 + 1 + 5;
    EXPECT_EQ(sum(metrics_of(comm), "all_to_all_v", "bytes"), 4 * all);
  });
}

TEST(Metrics, count_operations_that_fail) {
  run_ranks(2, [&](Communicator& comm) {
    std::vector<float> x(1, 1.0F);
    auto never = comm.recv(view(x), Rank{1 - index(comm.rank())}, {}, 9);
    ASSERT_OK(never.status());
    if (comm.rank() == Rank{0}) ASSERT_OK(comm.revoke());
    EXPECT_FALSE(wait(std::move(never)).ok());
    const Json metrics = metrics_of(comm);
    EXPECT_EQ(metrics.at("failed"), true);
    EXPECT_EQ(sum(metrics, "recv", "failed"), 1U);
  });
}

TEST(Metrics, are_of_all_threads_of_a_team) {
  run_ranks(2, [&](Communicator& comm) {
    ASSERT_EQ(anycclCommParts(comm.handle(), 2), anycclSuccess);
    const std::uint64_t before = sum(metrics_of(comm), "all_reduce", "bytes");
    std::vector<float> x(100000, 1.0F);
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t)
      threads.emplace_back([&, t] {
        EXPECT_EQ(anycclAllReducePart(x.data(), x.data(), x.size(), anycclFloat32, anycclSum,
                                      comm.handle(), t, 2),
                  anycclSuccess);
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(sum(metrics_of(comm), "all_reduce", "bytes") - before, 4 * x.size());
  });
}

TEST(Metrics, are_none_without_records) {
  const Environment environment(Variables{{"ANYCCL_RECORD", "0"}});
  run_ranks(1, [&](Communicator& comm) {
    ASSERT_OK(reduce(comm));
    EXPECT_TRUE(metrics_of(comm).at("operations").empty());
    EXPECT_EQ(anycclCommMetrics(comm.handle(), nullptr), anycclInvalidArgument);
    EXPECT_EQ(anycclMetrics(nullptr), anycclInvalidArgument);
  });
}

/// Of a series, whose labels the pattern may name; -1: it is not there.
double value(const std::string& text, const std::string& pattern) {
  std::smatch match;
  return std::regex_search(text, match, std::regex("(^|\n)" + pattern + " ([^\n]+)\n"))
             ? std::stod(match[2])
             : -1;
}

double calls_of(const std::string& text, const std::string& name) {
  return value(text, "anyccl_operations_total\\{pid=\"\\d+\",communicator=\"" + name +
                         "\",rank=\"0\",operation=\"barrier\"[^\n]*\\}");
}

TEST(ProcessMetrics, go_on_counting_when_communicators_end) {
  run_ranks(1, [&](Communicator& comm) {
    CommunicatorConfig config;
    config.name = R"(a "b" \c)";
    const std::string escaped = R"(a \\"b\\" \\\\c)";  // as a pattern
    const auto before = metrics_text();
    ASSERT_OK(before.status());
    const double earlier = std::max(0.0, calls_of(*before, escaped));  // of the same process
    for (int round = 1; round <= 3; ++round) {
      auto part = comm.split(0, 0, config);
      ASSERT_OK(part.status());
      ASSERT_OK(wait(part->barrier()));
      ASSERT_OK(part->destroy());
      const auto text = metrics_text();
      ASSERT_OK(text.status());
      EXPECT_EQ(calls_of(*text, escaped) - earlier, round) << *text;
    }
  });
}

/// What Prometheus reads: comments with a type, and lines of a name, labels and a number.
TEST(ProcessMetrics, have_the_format_of_prometheus) {
  run_ranks(2, [&](Communicator& comm) {
    ASSERT_OK(reduce(comm));
    const auto text = metrics_text();
    ASSERT_OK(text.status());
    const std::regex line(R"((# HELP anyccl_\w+ [\w ,']+\.)|(# TYPE anyccl_\w+ (counter|gauge))|)"
                          R"((anyccl_\w+\{(\w+="([^"\\]|\\.)*",?)+\} [-+.e\d]+))");
    std::istringstream lines(*text);
    std::map<std::string, int> series;
    for (std::string one; std::getline(lines, one);) {
      EXPECT_TRUE(std::regex_match(one, line)) << one;
      ++series[one.substr(0, one.rfind(' '))];
    }
    for (const auto& [name, times] : series) EXPECT_TRUE(times == 1 || name[0] == '#') << name;
    EXPECT_GE(value(*text, "anyccl_communicators\\{pid=\"\\d+\"\\}"), 2);
    EXPECT_GT(value(*text, "anyccl_memory_bytes\\{pid=\"\\d+\"\\}"), 0);
  });
}

std::string text_in(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(ProcessMetrics, are_written_at_exit_a_file_for_each_process) {
  const TemporaryFolder folder;
  expect_all_passed(run_processes(
      2,
      [](Communicator& comm) {
        for (int i = 0; i < 5; ++i) ASSERT_OK(wait(comm.barrier()));
        ASSERT_OK(comm.destroy());
        std::exit(testing::Test::HasFailure() ? 1 : 0);
      },
      [&](int) {
        return Variables{{"ANYCCL_METRICS", folder.path()}};
      }));
  double calls = 0, links = 0;
  int files = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder.path())) {
    EXPECT_EQ(file.path().extension(), ".prom");
    const std::string text = text_in(file.path());
    calls += std::max(0.0, calls_of(text, ""));
    links += value(text, "anyccl_links\\{pid=\"\\d+\"\\}");
    ++files;
  }
  EXPECT_EQ(files, 2);
  EXPECT_EQ(calls, 5) << "of rank 0";
  EXPECT_EQ(links, 0) << "after the end of the communicator";
}

TEST(ProcessMetrics, that_cannot_be_written_are_one_warning) {
  const TemporaryFolder folder;
  const std::string log = folder.path() + "/log";
  expect_all_passed(run_processes(
      1,
      [](Communicator& comm) {
        ASSERT_OK(wait(comm.barrier()));
        std::exit(testing::Test::HasFailure() ? 1 : 0);
      },
      [&](int) {
        return Variables{{"ANYCCL_METRICS", folder.path() + "/none"}, {"ANYCCL_DEBUG_FILE", log}};
      }));
  EXPECT_NE(text_in(log).find("no metrics, see ANYCCL_METRICS"), std::string::npos) << text_in(log);
}

}  // namespace
}  // namespace anyccl::test
