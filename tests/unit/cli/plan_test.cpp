#include <algorithm>
#include <set>
#include <tuple>

#include "plan/advice.hpp"
#include "plan/search.hpp"
#include "plan_support.hpp"

namespace anyccl::cli {
namespace {

constexpr double kGiB = 1 << 30;

TEST(PlanModel, presets_have_the_parameters_of_the_models) {
  EXPECT_EQ(parameters(model_named("llama3-8b")).total, 8'030'261'248);
  EXPECT_EQ(parameters(model_named("llama3-70b")).total, 70'553'706'496);
  EXPECT_EQ(parameters(model_named("llama3-405b")).total, 405'853'388'800);
  EXPECT_EQ(parameters(model_named("gpt3-175b")).total, 174'604'259'328);
  EXPECT_EQ(parameters(model_named("mixtral-8x7b")).total, 46'702'792'704);
  EXPECT_EQ(parameters(model_named("mixtral-8x7b")).active, 12'879'925'248);
  EXPECT_EQ(parameters(model_named("deepseek-v3")).total, 671'026'419'200);
  EXPECT_EQ(parameters(model_named("deepseek-v3")).active, 37'552'297'472);
}

TEST(PlanModel, counts_more_parameters_of_a_table_than_an_int_holds) {
  constexpr int kMost = 1 << 24;
  Model m = gpt(1, 1, 1);
  m.hidden = m.vocab = m.positions = kMost;
  m.ffn = m.heads = m.kv_heads = m.head_dim = 0;
  const double hidden = kMost;  // beside both tables: biases of two matrices, three norms
  EXPECT_EQ(parameters(m).total, 2 * hidden * hidden + 2 * hidden + 3 * 2 * hidden);
}

TEST(PlanModel, counts_more_experts_of_all_layers_than_an_int_holds) {
  constexpr int kMost = 1 << 24;
  Model m = gpt(kMost, 1, 1);
  m.biased = false;
  m.experts.emplace();
  m.experts->routed = kMost;
  m.experts->ffn = 1;
  EXPECT_EQ(parameters(m).routed, 2.0 * kMost * kMost);
}

TEST(PlanModel, flops_of_a_gpt_are_megatrons_formula) {
  const double l = 96, h = 12288, s = 2048, v = 51200;
  Parallelism p;
  p.sequence = 2048;
  p.attention = Attention::full;
  const double formula = 72 * s * l * h * h * (1 + s / (6 * h) + v / (12 * h * l));
  EXPECT_NEAR(step_flops(gpt(96, 12288, 96), p) / formula, 1, 1e-12);
}

TEST(PlanModel, full_recomputation_adds_a_forward_pass_of_the_layers) {
  const double l = 96, h = 12288, s = 2048, v = 51200;
  Parallelism p;
  p.sequence = 2048;
  p.attention = Attention::full;
  p.recompute = Recompute::full;
  const double formula = 96 * s * l * h * h * (1 + s / (6 * h) + v / (16 * l * h));
  EXPECT_NEAR(estimate(gpt(96, 12288, 96), cluster_named("a100", 1), p).hardware_flops / formula, 1,
              1e-12);
}

/// Llama 3 405B as it was trained, with one micro-batch, on 16 stages.
struct Llama {
  Model model = model_named("llama3-405b");
  Cluster cluster = cluster_named("h100", 16384);
  Parallelism p;
  Llama() {
    p.tensor = 8;
    p.pipeline = 16;
    p.data = 128;
    p.batch = 128;
    p.sequence = 8192;
  }
  Traffic row(std::string_view kind) const {
    EXPECT_TRUE(check(p, model, cluster).ok()) << check(p, model, cluster).message();
    for (const Traffic& row : estimate(model, cluster, p).traffic)
      if (row.kind == kind) return row;
    ADD_FAILURE() << "no traffic of " << kind;
    return {};
  }
};

TEST(PlanTraffic, tensor_parallel_sends_eight_ring_shares_of_an_activation_per_layer) {
  Llama llama;
  EXPECT_EQ(activation_bytes(llama.model, llama.p), kGiB / 4);
  const double layers = 8;
  EXPECT_DOUBLE_EQ(llama.row("tensor").bytes / layers / kGiB, 1.75);
  llama.p.sequence_parallel = true;
  EXPECT_DOUBLE_EQ(llama.row("tensor").bytes / layers / kGiB, 2.1875);
}

TEST(PlanTraffic, stages_send_an_activation_each_way) {
  Llama llama;
  llama.p.sequence_parallel = true;
  EXPECT_DOUBLE_EQ(llama.row("pipeline").bytes / (1 << 20), 2 * 32);
}

TEST(PlanTraffic, gradients_and_weights_travel_among_data_parallel_devices) {
  EXPECT_NEAR(Llama().row("data").bytes / 1e9, 18.88, 0.005);
  const double llama_8b = 8'030'261'248;
  EXPECT_NEAR(gradient_traffic_bytes(llama_8b, 8, 0, 2, 1) / 1e9, 28.11, 0.005);
  EXPECT_NEAR(gradient_traffic_bytes(llama_8b, 8, 3, 2, 1) / 1e9, 42.16, 0.005);
}

// 175e9 gradients in bf16: each of n devices sends 2 G (n - 1) / n bytes.
TEST(PlanTraffic, an_all_reduce_of_gradients_sends_up_to_twice_their_size) {
  for (const auto& [devices, gigabytes] :
       {std::pair{2, 350.0}, {8, 612.5}, {64, 689.0625}, {1024, 699.316}})
    EXPECT_NEAR(gradient_traffic_bytes(175e9, devices, 0, 2, 1) / 1e9, gigabytes, 0.001);
}

TEST(PlanTraffic, context_parallel_gathers_keys_and_values) {
  Llama llama;
  llama.p.context = 16;
  llama.p.pipeline = 1;
  llama.p.sequence = 131072;
  const double forward = llama.row("context").bytes / 2 / llama.model.layers;
  EXPECT_NEAR(forward / 1e6, 62.9, 0.05);
}

TEST(PlanTraffic, experts_get_a_token_once_per_host) {
  const Model m = model_named("deepseek-v3");
  EXPECT_NEAR(expert_bytes(m, 4096, 8, Precision::fp8) / 1e6, 704.6, 0.05);
  EXPECT_NEAR(expert_bytes(m, 4096, 4, Precision::fp8) / 1e6, 352.3, 0.05);
}

TEST(PlanTraffic, imbalance_of_experts_is_paid_in_bytes) {
  Llama spread;
  spread.model = model_named("deepseek-v3");
  spread.cluster = cluster_named("h800", 2048);
  spread.p.tensor = 1;
  spread.p.expert = 64;
  const double even = spread.row("expert").bytes;
  spread.p.imbalance = 1.3;
  EXPECT_DOUBLE_EQ(spread.row("expert").bytes, 1.3 * even);
}

TEST(PlanTraffic, groups_that_the_end_of_a_host_cuts_are_between_hosts) {
  Llama llama;
  llama.model = gpt(24, 3072, 24);
  llama.p.pipeline = 1;
  llama.p.batch = 24;
  for (const auto& [devices, tensor, between] :
       {std::tuple{24, 4, false}, {24, 3, true}, {24, 6, true}, {6, 6, false}}) {
    llama.cluster.devices = devices;
    llama.p.tensor = tensor;
    llama.p.data = devices / tensor;
    EXPECT_EQ(llama.row("tensor").between, between) << devices << " / " << tensor;
  }
}

TEST(PlanTraffic, a_ring_is_as_fast_as_the_host_with_the_fewest_of_its_members) {
  Llama llama;
  llama.model = gpt(24, 3072, 24);
  llama.cluster.between.latency_us = 0;
  llama.p.pipeline = 1;
  llama.p.batch = 24;
  for (const auto& [tensor, members] : {std::pair{3, 1}, {6, 2}, {12, 4}, {24, 8}}) {
    llama.cluster.devices = 24;
    llama.p.tensor = tensor;
    llama.p.data = 24 / tensor;
    const Traffic row = llama.row("tensor");
    const double GBps = std::min(llama.cluster.inside.GBps, members * llama.cluster.between.GBps);
    EXPECT_DOUBLE_EQ(row.bytes / row.time_s / 1e9, GBps) << tensor;
  }
}

TEST(PlanTraffic, overlap_hides_what_is_shorter_than_computing) {
  Llama llama;
  const Traffic shown = llama.row("tensor");
  llama.p.overlap = true;
  const Traffic hidden = llama.row("tensor");
  EXPECT_EQ(shown.exposed_s, shown.time_s);
  EXPECT_DOUBLE_EQ(hidden.exposed_s, hidden.time_s / 8) << "the last of 8 layers shows";
}

TEST(PlanMemory, weights_gradients_and_optimizer_are_divided_as_zero_says) {
  const Llama llama;
  const DeviceMemory m = memory_of(llama.model, llama.p);
  EXPECT_NEAR(m.weights / 1e9, 6.34, 0.005);
  EXPECT_NEAR(m.gradients / 1e9, 12.68, 0.005);
  EXPECT_NEAR(m.optimizer / 1e9, 0.30, 0.005);
}

TEST(PlanStep, is_the_sum_of_its_parts) {
  const Llama llama;
  const StepEstimate step = estimate(llama.model, llama.cluster, llama.p);
  double sum = step.compute_s + step.bubble_s;
  for (const Traffic& row : step.traffic) sum += row.exposed_s;
  EXPECT_DOUBLE_EQ(step.time_s, sum);
}

TEST(PlanStep, uses_no_more_than_a_device_can_do) {
  const Llama llama;
  const StepEstimate step = estimate(llama.model, llama.cluster, llama.p);
  EXPECT_LT(step.hfu, llama.cluster.device.best_efficiency);
  EXPECT_LE(step.mfu, step.hfu);
}

TEST(PlanSearch, finds_layouts_that_fit_and_the_fastest_first) {
  const Model m = model_named("llama3-70b");
  const Cluster c = cluster_named("h100", 64);
  Parallelism wanted;
  wanted.batch = 512;
  wanted.sequence = 8192;
  const LayoutSearch found = search_layouts(m, c, wanted, 10);
  ASSERT_EQ(found.best.size(), 10U);
  for (const PlannedStep& plan : found.best) {
    EXPECT_TRUE(check(plan.layout, m, c).ok());
    EXPECT_TRUE(fits(plan.step.memory, c.device));
    EXPECT_GE(plan.step.time_s, found.best[0].step.time_s);
    EXPECT_EQ(plan.step.time_s, estimate(m, c, plan.layout).time_s);
  }
  ASSERT_TRUE(found.fastest_too_large);
  EXPECT_FALSE(fits(found.fastest_too_large->step.memory, c.device));
}

TEST(PlanSearch, keeps_tensor_parallel_devices_on_one_host) {
  Parallelism wanted;
  wanted.batch = 192;
  wanted.sequence = 6144;
  std::set<int> tensor;
  for (const PlannedStep& plan :
       search_layouts(gpt(24, 3072, 24), cluster_named("h100", 24), wanted, 100'000).best)
    tensor.insert(plan.layout.tensor);
  EXPECT_EQ(tensor, (std::set{1, 2, 4, 8}));
}

TEST(PlanSearch, tries_as_many_stages_as_can_be_planned) {
  Parallelism wanted;
  wanted.batch = 8;
  wanted.sequence = 2048;
  int most = 0;
  for (const PlannedStep& plan :
       search_layouts(gpt(6, 3072, 24), cluster_named("h100", 8), wanted, 100'000).best)
    most = std::max(most, plan.layout.pipeline);
  EXPECT_EQ(most, 8) << "6 layers, the embedding and the head";
}

TEST(PlanRemedies, each_lowers_the_exposed_share) {
  const Model m = model_named("llama3-8b");
  Cluster c = cluster_named("h100", 64);
  c.between.GBps = 1;
  Parallelism p;
  p.data = 64;
  p.batch = 64;
  p.sequence = 4096;
  const PlannedStep plan{p, estimate(m, c, p)};
  ASSERT_GT(plan.step.exposed_share(), kTolerableShare);
  const std::vector<Remedy> found = remedies(m, c, plan);
  ASSERT_EQ(found.size(), 4U);
  for (const Remedy& remedy : found) {
    EXPECT_LT(remedy.share, plan.step.exposed_share()) << remedy.change;
    EXPECT_GT(remedy.speed_up, 1) << remedy.change;
  }
}

}  // namespace
}  // namespace anyccl::cli
