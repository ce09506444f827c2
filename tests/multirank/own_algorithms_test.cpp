// Algorithms that users write: loaded, chosen by name, checked before they run, the same on all
// ranks.

#include <fmt/format.h>

#include <fstream>

#include "support/ranks.hpp"
#include "support/temporary_folder.hpp"

namespace anyccl::test {
namespace {

/// Rank 0 adds up everything, or, if `wrong`, forgets itself. `order`: of its sum's first operands.
std::string star(const std::string& name, int ranks, const std::string& order = "0, 1",
                 bool wrong = false) {
  std::string others;
  for (int r = 2; r < ranks; ++r) others += fmt::format(", {}", r);
  const std::string summands = wrong ? "1" + others : order + others;
  std::string steps =
      fmt::format(R"([["recv_reduce", [{}], "i0", "o0", "@star.py:3"], ["send", [1{}], "o0"]])",
                  summands, others);
  for (int r = 1; r < ranks; ++r) steps += R"(, [["send", [0], "i0"], ["recv", [0], "o0"]])";
  return fmt::format(
      R"({{"format": "anyccl.algorithm/1", "name": "{}", "collective": "all_reduce", )"
      R"("sizes": [{{"ranks": {}, "steps": [{}]}}]}})",
      name, ranks, steps);
}

class OwnAlgorithm : public ::testing::Test {
 protected:
  std::string file_of(const std::string& text, const std::string& name = "mine.json") const {
    const std::string path = folder_.path() + "/" + name;
    std::ofstream(path) << text;
    return path;
  }

 private:
  TemporaryFolder folder_;
};

/// The plan of an AllReduce whose result is right, or what is wrong with the call.
std::string plan_of(Communicator& comm, const char* algorithm = nullptr) {
  std::vector<float> x(1000, static_cast<float>(index(comm.rank()) + 1));
  anycclCollConfig_t config = ANYCCL_COLLCONFIG_INITIALIZER;
  config.algSelection = algorithm;
  const anycclResult_t result = anycclAllReduceConfig(x.data(), x.data(), x.size(), anycclFloat32,
                                                      anycclSum, comm.handle(), nullptr, &config);
  if (result != anycclSuccess) return anycclGetLastError(comm.handle());
  const int n = comm.size();
  EXPECT_EQ(x, std::vector<float>(1000, static_cast<float>(n * (n + 1) / 2)));
  const char* text = "";
  EXPECT_EQ(anycclCommLastPlan(comm.handle(), &text), anycclSuccess);
  return text;
}

void expect_words(const std::string& text, const std::vector<std::string>& words) {
  for (const std::string& word : words)
    EXPECT_NE(text.find(word), std::string::npos) << "no '" << word << "' in: " << text;
}

TEST_F(OwnAlgorithm, is_used_by_its_name) {
  ASSERT_OK(load_algorithms(file_of(star("named", 3))));
  run_ranks(3, [](Communicator& comm) {
    EXPECT_TRUE(plan_of(comm, "named").starts_with("all_reduce/named ")) << plan_of(comm, "named");
    EXPECT_FALSE(plan_of(comm).starts_with("all_reduce/named "));
  });
}

TEST_F(OwnAlgorithm, comes_from_the_environment) {
  const Environment env(
      Environment::Variables{{"ANYCCL_ALGO_PATH", file_of(star("from_environment", 4))},
                             {"ANYCCL_ALGO", "all_reduce:from_environment"}});
  run_ranks(4, [](Communicator& comm) {
    EXPECT_TRUE(plan_of(comm).starts_with("all_reduce/from_environment ")) << plan_of(comm);
  });
}

/// The plan of the last of four small AllReduces in a group.
std::string plan_of_group(Communicator& comm, const std::string& algorithm) {
  std::vector<std::vector<float>> all(4, std::vector<float>(10, 1));
  anycclCollConfig_t config = ANYCCL_COLLCONFIG_INITIALIZER;
  config.algSelection = algorithm.c_str();
  EXPECT_EQ(anycclGroupStart(), anycclSuccess);
  for (auto& x : all)
    EXPECT_EQ(anycclAllReduceConfig(x.data(), x.data(), x.size(), anycclFloat32, anycclSum,
                                    comm.handle(), nullptr, &config),
              anycclSuccess);
  EXPECT_EQ(anycclGroupEnd(), anycclSuccess) << comm.failure().message();
  for (const auto& x : all) EXPECT_EQ(x, std::vector<float>(10, static_cast<float>(comm.size())));
  const char* text = "";
  EXPECT_EQ(anycclCommLastPlan(comm.handle(), &text), anycclSuccess);
  return text;
}

/// The averages of the ranks' `x`, by `algorithm`.
template <typename T>
std::vector<T> averaged(Communicator& comm, const std::vector<T>& x, const char* algorithm) {
  std::vector<T> y(x.size());
  anycclCollConfig_t config = ANYCCL_COLLCONFIG_INITIALIZER;
  config.algSelection = algorithm;
  config.reproducible = 3;
  EXPECT_EQ(anycclAllReduceConfig(x.data(), y.data(), x.size(),
                                  static_cast<anycclDataType_t>(dtype_of<T>()), anycclAvg,
                                  comm.handle(), nullptr, &config),
            anycclSuccess)
      << anycclGetLastError(comm.handle());
  return y;
}

/// Of 16 bits it rounds once, after the division, as algorithms of the library that add up at once.
TEST_F(OwnAlgorithm, averages_numbers_whose_sum_is_too_large_for_their_type) {
  ASSERT_OK(load_algorithms(file_of(star("averages", 3))));
  run_ranks(3, [](Communicator& comm) {
    constexpr std::uint16_t k60000 = 0x7b53;  // of f16, whose largest number is 65504
    for (const Float16& average :
         averaged(comm, std::vector<Float16>(1000, Float16{k60000}), "averages"))
      ASSERT_EQ(average.bits, k60000);

    std::vector<BFloat16> x(4096);
    for (std::size_t i = 0; i < x.size(); ++i)
      x[i].bits = static_cast<std::uint16_t>(0x3f80 + (37 * i + 11 * uindex(comm.rank())) % 128);
    const auto mine = averaged(comm, x, "averages"), usual = averaged(comm, x, "one_shot");
    for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(mine[i].bits, usual[i].bits) << i;
  });
}

TEST_F(OwnAlgorithm, that_adds_up_by_the_tree_fuses_calls_of_a_group) {
  const std::string file = file_of(star("by_the_tree", 3));
  expect_all_passed(run_processes(3, [&](Communicator& comm) {
    ASSERT_OK(load_algorithms(file));
    expect_words(plan_of_group(comm, "by_the_tree"), {"all_reduce/by_the_tree ", "4 calls as one"});
  }));
}

TEST_F(OwnAlgorithm, that_adds_up_in_another_order_fuses_none) {
  std::string text = star("in_another_order", 3);
  const std::string in_order = "[0, 1, 2]";
  text.replace(text.find(in_order), in_order.size(), "[0, 2, 1]");
  const std::string file = file_of(text);
  expect_all_passed(run_processes(3, [&](Communicator& comm) {
    ASSERT_OK(load_algorithms(file));
    const std::string plan = plan_of_group(comm, "in_another_order");
    EXPECT_TRUE(plan.starts_with("all_reduce/in_another_order ")) << plan;
    EXPECT_EQ(plan.find("as one"), std::string::npos) << plan;
  }));
}

TEST_F(OwnAlgorithm, file_that_cannot_be_read_is_named_when_a_communicator_is_created) {
  const std::string file = file_of("{\n\"format\": 1}");
  const Environment env(Environment::Variables{{"ANYCCL_ALGO_PATH", file}});
  const auto comms = Communicator::init_all(1);
  EXPECT_EQ(comms.status().code(), Code::invalid_argument);
  expect_words(std::string(comms.status().message()), {"ANYCCL_ALGO_PATH: " + file, "format"});
}

TEST_F(OwnAlgorithm, of_other_numbers_of_ranks_says_which_it_has) {
  const std::string file = file_of(star("of_three", 3));
  ASSERT_OK(load_algorithms(file));
  run_ranks(2, [&](Communicator& comm) {
    expect_words(plan_of(comm, "of_three"),
                 {"all_reduce/of_three does not support 2 ranks", "3 ranks, for which " + file});
  });
}

TEST_F(OwnAlgorithm, is_checked_before_it_runs_and_the_communicator_lives_on) {
  const std::string file = file_of(star("wrong", 3, "", true));
  ASSERT_OK(load_algorithms(file));
  for (const char* level : {"1", "2"}) {
    const Environment environment(Environment::Variables{{"ANYCCL_REPRODUCIBLE", level}});
    run_ranks(3, [&](Communicator& comm) {
      expect_words(plan_of(comm, "wrong"),
                   {file + ": all_reduce/wrong with 3 ranks", "output chunk 0", "1+2"});
      EXPECT_TRUE(plan_of(comm).starts_with("all_reduce/")) << plan_of(comm);
    });
  }
}

TEST_F(OwnAlgorithm, that_another_rank_has_otherwise_is_named_when_they_meet) {
  expect_all_passed(run_processes(2, [&](Communicator& comm) {
    const bool first = comm.rank() == Rank{0};
    const std::string name = first ? "a.json" : "b.json";
    ASSERT_OK(load_algorithms(file_of(star("differs", 2, first ? "0, 1" : "1, 0"), name)));
    const Status split = comm.split(0, 0).status();
    EXPECT_EQ(split.code(), Code::invalid_usage);
    expect_words(std::string(split.message()),
                 {"all_reduce/differs must be the same on every rank", "rank 0", "rank 1"});
  }));
}

TEST_F(OwnAlgorithm, that_another_rank_has_otherwise_is_no_hang_when_it_is_loaded_later) {
  expect_all_passed(run_processes(2, [&](Communicator& comm) {
    const bool first = comm.rank() == Rank{0};
    const std::string name = first ? "a.json" : "b.json";
    ASSERT_OK(load_algorithms(file_of(star("later", 2, first ? "0, 1" : "1, 0"), name)));
    expect_words(plan_of(comm, "later"), {"rank"});
    EXPECT_FALSE(plan_of(comm, "later").starts_with("all_reduce/"));
  }));
}

TEST_F(OwnAlgorithm, runs_in_a_child_of_the_process_that_has_loaded_it) {
  ASSERT_OK(load_algorithms(file_of(star("inherited", 2))));
  expect_all_passed(run_processes(2, [](Communicator& comm) {
    EXPECT_TRUE(plan_of(comm, "inherited").starts_with("all_reduce/inherited "))
        << plan_of(comm, "inherited");
  }));
}

TEST(OwnAlgorithms, a_path_is_needed) {
  EXPECT_EQ(anycclLoadAlgorithms(nullptr), anycclInvalidArgument);
  EXPECT_EQ(anycclLoadAlgorithms("/none.json"), anycclSystemError);
}

}  // namespace
}  // namespace anyccl::test
