// The formulas of docs/lab/model.md: the replay takes the same time, to 1e-9.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "simulate/read_network.hpp"
#include "simulate/replay.hpp"

namespace anyccl::cli {
namespace {

constexpr double kAlpha = 5e-6, kBeta = 1 / 25e9;  // those of the course

ReplayResult replayed(Collective collective, std::string_view name, int ranks, double bytes,
                      int ranks_per_host = 0) {
  const Algorithm* algorithm = find_algorithm(collective, name);
  EXPECT_NE(algorithm, nullptr) << name;
  Shape shape{collective, ranks};
  for (int r = 0; ranks_per_host > 0 && r < ranks; ++r) shape.host_of.push_back(r / ranks_per_host);
  const auto programs = RankPrograms::of(*algorithm, shape);
  EXPECT_TRUE(programs.ok()) << programs.status().message();
  const auto network = read_network("flat", static_cast<std::uint32_t>(ranks));
  std::vector<std::uint32_t> place(static_cast<std::size_t>(ranks));
  std::iota(place.begin(), place.end(), 0U);
  auto result = replay(*programs, *network, {}, bytes, place);
  EXPECT_TRUE(result.ok()) << result.status().message();
  return std::move(*result);
}

double all_reduce_s(std::string_view name, int ranks, double bytes) {
  return replayed(Collective::all_reduce, name, ranks, bytes).seconds;
}

/// m: bytes of the vector, or of one block where each rank has its own.
double ring(double n, double m) {
  return 2 * (n - 1) * (kAlpha + kBeta * m / n);
}
double halving_doubling(double n, double m) {
  return 2 * std::log2(n) * kAlpha + 2 * (n - 1) / n * m * kBeta;
}
double doubling(double n, double m) {
  return std::log2(n) * (kAlpha + kBeta * m);
}
double rotation(double n, double m) {
  return (n - 1) * (kAlpha + kBeta * m);
}
/// All at once: one latency, and everything through one port.
double direct(double n, double m) {
  return kAlpha + (n - 1) * kBeta * m;
}
double two_shot(double n, double m) {
  return 2 * direct(n, m / n);
}
/// The root's messages to its log2 n children leave together and share its port, and so on down the
/// tree.
double tree_down(double n, double m) {
  const double k = std::log2(n);
  return k * kAlpha + k * (k + 1) / 2 * kBeta * m;
}
/// Of a square of ranks.
double torus(double n, double m) {
  return 4 * (std::sqrt(n) - 1) * kAlpha + 2 * (n - 1) / n * m * kBeta;
}

struct Form {
  Collective collective;
  std::string_view algorithm;
  double (*seconds)(double n, double m);
};

class ClosedForm : public ::testing::TestWithParam<Form> {};
INSTANTIATE_TEST_SUITE_P(
    Model, ClosedForm,
    ::testing::Values(Form{Collective::all_reduce, "ring", ring},
                      Form{Collective::all_reduce, "halving_doubling", halving_doubling},
                      Form{Collective::all_reduce, "recursive_doubling", doubling},
                      Form{Collective::all_reduce, "one_shot", direct},
                      Form{Collective::all_reduce, "two_shot", two_shot},
                      Form{Collective::reduce, "binomial", doubling},
                      Form{Collective::broadcast, "binomial", tree_down},
                      Form{Collective::reduce_scatter, "ring", rotation},
                      Form{Collective::all_gather, "ring", rotation},
                      Form{Collective::all_to_all, "pairwise", rotation},
                      Form{Collective::all_to_all, "direct", direct}));

TEST_P(ClosedForm, is_what_the_replay_takes) {
  const Form& form = GetParam();
  for (const int n : {2, 8, 64})
    for (const double bytes : {64.0, 65536.0, 1048576.0, 268435456.0}) {
      const double expected = form.seconds(n, bytes);
      EXPECT_NEAR(replayed(form.collective, form.algorithm, n, bytes).seconds / expected, 1, 1e-9)
          << form.algorithm << " of " << bytes << " bytes on " << n << " ranks";
    }
}

TEST(Model, a_square_of_ranks_and_hosts_pay_for_both_levels) {
  const double m = 1048576;
  for (const int n : {16, 64})
    EXPECT_NEAR(all_reduce_s("torus_2d", n, m) / torus(n, m), 1, 1e-9) << n;
  // 8 hosts of 8: reduce-scatter inside, two_shot between, all-gather inside.
  const double two_level = 4 * kAlpha + 2 * 63.0 / 64 * m * kBeta;
  EXPECT_NEAR(replayed(Collective::all_reduce, "two_level", 64, m, 8).seconds / two_level, 1, 1e-9);
}

struct CourseRow {
  std::string_view algorithm;
  int ranks;
  double us[4];  ///< For 8 B, 64 KiB, 1 MiB and 256 MiB, as printed in docs/lab/model.md.
};
constexpr CourseRow kCourse[] = {
    {"ring", 8, {70.001, 74.588, 143.400, 18860.482}},
    {"ring", 64, {630.001, 635.161, 712.575, 21769.292}},
    {"ring", 1024, {10230.001, 10235.238, 10313.804, 31683.865}},
    {"halving_doubling", 8, {30.001, 34.588, 103.400, 18820.482}},
    {"halving_doubling", 64, {60.001, 65.161, 142.575, 21199.292}},
    {"halving_doubling", 1024, {100.001, 105.238, 183.804, 21553.865}},
};

TEST(Model, has_the_table_of_the_course) {
  constexpr double kBytes[] = {8, 65536, 1048576, 268435456};
  for (const CourseRow& row : kCourse)
    for (std::size_t i = 0; i < 4; ++i) {
      const auto form = row.algorithm == "ring" ? ring : halving_doubling;
      const double expected = form(row.ranks, kBytes[i]);
      EXPECT_NEAR(expected * 1e6, row.us[i], 5.1e-4);
      EXPECT_NEAR(all_reduce_s(row.algorithm, row.ranks, kBytes[i]) / expected, 1, 1e-9);
    }
  // Binomial reduce and broadcast as textbooks count them, twice up the tree, and recursive
  // doubling; 1 MiB.
  const auto up_us = [](int n) {
    return replayed(Collective::reduce, "binomial", n, 1048576).seconds * 1e6;
  };
  EXPECT_NEAR(2 * up_us(8), 281.658, 5.1e-4);
  EXPECT_NEAR(2 * up_us(64), 563.316, 5.1e-4);
  EXPECT_NEAR(all_reduce_s("recursive_doubling", 8, 1048576) * 1e6, 140.829, 5.1e-4);
  EXPECT_NEAR(all_reduce_s("recursive_doubling", 64, 1048576) * 1e6, 281.658, 5.1e-4);
}

TEST(Model, half_of_the_time_is_latency_at_the_size_that_the_formula_says) {
  const auto ring_bytes = [](double n) { return n * kAlpha / kBeta; };
  const auto halving_bytes = [](double n) { return n * std::log2(n) / (n - 1) * kAlpha / kBeta; };
  const struct {
    int ranks;
    double ring_MB, halving_MB;
  } rows[] = {{8, 1, 0.429}, {64, 8, 0.762}, {1024, 128, 1.251}};
  for (const auto& row : rows) {
    const double n = row.ranks;
    EXPECT_NEAR(ring_bytes(n) / 1e6, row.ring_MB, 5.1e-4);
    EXPECT_NEAR(halving_bytes(n) / 1e6, row.halving_MB, 5.1e-4);
    if (row.ranks > 64) continue;  // a replay of two million messages would show the same once more
    EXPECT_NEAR(all_reduce_s("ring", row.ranks, ring_bytes(n)) / (4 * (n - 1) * kAlpha), 1, 1e-9);
    EXPECT_NEAR(
        all_reduce_s("halving_doubling", row.ranks, halving_bytes(n)) / (4 * std::log2(n) * kAlpha),
        1, 1e-9);
  }
}

TEST(Model, recursive_doubling_and_halving_doubling_meet_where_the_formula_says) {
  const struct {
    int ranks;
    double kB;
  } rows[] = {{8, 300}, {64, 186.047}};
  for (const auto& [ranks, kB] : rows) {
    const double k = std::log2(ranks), n = ranks;
    const double bytes = k * kAlpha / kBeta / (k - 2 * (n - 1) / n);
    EXPECT_NEAR(bytes / 1e3, kB, 5.1e-4);
    EXPECT_NEAR(all_reduce_s("recursive_doubling", ranks, bytes) /
                    all_reduce_s("halving_doubling", ranks, bytes),
                1, 1e-9);
  }
}

TEST(Model, each_rank_sends_2_times_n_minus_1_nths) {
  const struct {
    int ranks;
    double GB;
  } rows[] = {{2, 350}, {8, 612.5}, {64, 689.0625}, {1024, 699.31640625}};
  for (const auto& [ranks, GB] : rows) {
    EXPECT_NEAR(2 * 350.0 * (ranks - 1) / ranks, GB, 1e-9);
    if (ranks > 64) continue;  // as above
    const auto bytes = replayed(Collective::all_reduce, "ring", ranks, 350e9).link_bytes;
    EXPECT_NEAR(*std::max_element(bytes.begin(), bytes.end()) / (GB * 1e9), 1, 1e-9) << ranks;
  }
}

}  // namespace
}  // namespace anyccl::cli
