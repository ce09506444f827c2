// Plans that follow each other in one ring, and planted faults in plans.

#include <array>

#include "algorithm/schedule/print.hpp"
#include "support.hpp"
#include "support/effort.hpp"

namespace anyccl::verify {
namespace {

std::vector<Plan> lowered(Collective collective, std::string_view name, int n) {
  auto plans = lower_all(built(collective, name, n), kLeastSlots);
  EXPECT_TRUE(plans.ok()) << plans.status().message();
  return *plans;
}

// Operations one after the other, each reusing the slots of the one before.
Status run(const std::vector<const std::vector<Plan>*>& sequence, Setting setting) {
  std::vector<Operation> operations;
  for (const auto* plans : sequence) operations.push_back({plans});
  Terms terms;
  return simulate(operations, setting, terms).status();
}

Status thrice(const std::vector<Plan>& plans, Setting setting) {
  return run({&plans, &plans, &plans}, setting);
}

struct NamedPlan {
  std::string name;
  std::vector<Plan> plans;
};

std::vector<NamedPlan> catalog_plans(int n) {
  std::vector<NamedPlan> all;
  for (const Algorithm* a : algorithms_for(n))
    for (int root :
         is_rooted(a->collective) ? std::vector<int>{0, 1, n - 1} : std::vector<int>{0}) {
      const Shape shape{a->collective, n, Rank{root}};
      auto plans = lower_all(build_all(*a, shape), kLeastSlots);
      EXPECT_TRUE(plans.ok()) << plans.status().message();
      all.push_back({id(*a) + " root " + std::to_string(root), *std::move(plans)});
    }
  return all;
}

std::vector<bool> even_ranks(int n) {
  std::vector<bool> lends(static_cast<std::size_t>(n));
  for (std::size_t r = 0; r < lends.size(); r += 2) lends[r] = true;
  return lends;
}

class Pairs : public testing::TestWithParam<int> {};

TEST_P(Pairs, of_plans_may_follow_each_other_in_one_ring) {
  const int n = GetParam();
  const auto all = catalog_plans(n);
  for (const NamedPlan& a : all)
    for (const NamedPlan& b : all) {
      const Status s = run({&a.plans, &b.plans, &a.plans},
                           {.slots = kLeastSlots, .banks = 1, .lends = even_ranks(n)});
      ASSERT_TRUE(s.ok()) << a.name << ", " << b.name << ": " << s.message();
      const Status t = run({&a.plans, &b.plans, &a.plans, &a.plans, &b.plans},
                           {.slots = kLeastSlots, .banks = 2});
      ASSERT_TRUE(t.ok()) << a.name << ", " << b.name << ": " << t.message();
    }
}

INSTANTIATE_TEST_SUITE_P(Of, Pairs, testing::Range(2, test::kSanitized ? 4 : 10));

TEST(Plan, operations_reuse_the_banks_when_there_are_more_than_banks) {
  const auto all = catalog_plans(5);
  std::vector<Operation> operations;
  for (std::uint32_t i = 0; i < 3 * kBanks; ++i) {
    const auto& plans = all[i * 7 % all.size()].plans;
    operations.push_back({&plans, plans[0].schedule.contract.has_bytes() ? 1 + i % 3 : 1});
  }
  for (std::uint32_t lanes : {1U, 2U, 3U}) {
    Terms terms;
    const auto result =
        simulate(operations, {.slots = kLeastSlots, .lanes = lanes, .lends = even_ranks(5)}, terms);
    EXPECT_TRUE(result.ok()) << lanes << " lanes: " << result.status().message();
  }
}

TEST(Plan, ranks_with_other_lending_and_memory_fit_together) {
  const int n = 6;
  for (const Algorithm* a : algorithms_for(n)) {
    std::vector<Plan> plans;  // each rank takes all others for being like itself
    for (int r = 0; r < n; ++r) {
      const Shape shape{a->collective, n, Rank{0}, r % 2 == 1};
      auto plan = lower(build_all(*a, shape), Rank{r}, kLeastSlots);
      ASSERT_TRUE(plan.ok()) << plan.status().message();
      plans.push_back(*std::move(plan));
      EXPECT_EQ(plans.back().posts_each, plans[0].posts_each);
    }
    const Status s = thrice(plans, {.slots = kLeastSlots, .banks = 1, .lends = even_ranks(n)});
    EXPECT_TRUE(s.ok()) << id(*a) << ": " << s.message();
  }
}

TEST(PlanFault, reader_that_the_publisher_does_not_know) {
  auto plans = lowered(Collective::broadcast, "flat", 4);
  plans[0].readers[0].erase(plans[0].readers[0].begin() + 1);
  expect_words(thrice(plans, {.slots = 1, .banks = 1}),
               {"rank 2 step 0 (recv)", "rank 0's publication 0", "not meant for it"});
}

TEST(PlanFault, slot_reused_before_the_last_tick_of_its_reader) {
  auto plans = lowered(Collective::all_reduce, "ring", 4);
  for (Plan& p : plans)
    for (auto& readers : p.readers) readers[0].tick = 1;
  expect_words(thrice(plans, {.slots = 2, .banks = 1}),
               {"rank 1 step 5 (recv_reduce)",
                "reuses slot 1 of bank 0 before rank 2 has surely read", "rank 1 step 1"});
}

TEST(PlanFault, reader_that_never_posts) {
  auto plans = lowered(Collective::all_reduce, "ring", 4);
  plans[2].posts_each = false;
  expect_words(thrice(plans, {.slots = 2}),
               {"deadlock", "rank 1 step", "output chunk", "until rank 2 posts", "missing post"});
}

TEST(PlanFault, steps_that_do_not_post) {
  auto plans = lowered(Collective::all_reduce, "two_shot", 3);
  for (PlanStep& s : plans[1].steps) s.tick = 0;
  for (PlanStep& s : plans[2].steps) s.tick = 0;
  const std::vector<bool> lends(3, true);
  expect_words(run({&plans}, {.lends = lends}),
               {"deadlock", "rank 0 waits to return", "until rank 1 posts", "missing post"});
}

TEST(PlanFault, wrong_slot) {
  auto plans = lowered(Collective::all_reduce, "two_shot", 4);
  plans[2].publications[1] = 3;
  Terms terms;
  const Operation tiled{&plans, 2};
  expect_words(simulate({&tiled, 1}, {.slots = kLeastSlots}, terms).status(),
               {"rank 2 step 1 (recv_reduce) of tile 1", "rank 1's publication 0", "output chunk 2",
                "in slot 3, but it is number 2 in slot 2"});
}

TEST(PlanFault, wrong_publication) {
  auto plans = lowered(Collective::all_reduce, "two_shot", 4);
  for (Ref& ref : plans[2].refs)
    if (ref.rank == 1) ref = {1, 1, 0};
  expect_words(run({&plans}, {}), {"rank 2 step 1 (recv_reduce)", "rank 1"});
}

TEST(PlanFault, too_few_slots) {
  const auto plans = lowered(Collective::all_to_all_v, "direct", 5);
  expect_words(run({&plans}, {.slots = 2}),
               {"deadlock", "rank 0 step 0 (send)", "input chunk 3", "waits for slot 0 of bank 0",
                "rank 1 has read", "rank 1 step 0 (send)"});
}

TEST(PlanFault, overwrites_what_it_lent) {
  auto plans = lowered(Collective::all_reduce, "recursive_doubling", 4);
  plans[1].steps[0].flags |= PlanStep::lendable;
  expect_words(run({&plans}, {.lends = std::vector<bool>(4, true)}),
               {"rank 1 step 2 (recv)", "overwrites output chunk 0", "rank 0 may still read it",
                "lent by rank 1 step 0"});
}

TEST(PlanFault, overwrites_what_it_lent_with_what_peers_had_before_they_read_it) {
  const Algorithm& one_shot = *find_algorithm(Collective::all_reduce, "one_shot");
  const Shape in_place{Collective::all_reduce, 3, Rank{0}, true};
  auto plans = lower_all(build_all(one_shot, in_place), kLeastSlots);
  ASSERT_TRUE(plans.ok()) << plans.status().message();
  (*plans)[1].steps[0].flags |= PlanStep::lendable;
  expect_words(run({&*plans}, {.lends = std::vector<bool>(3, true)}),
               {"rank 1", "overwrites", "may still read it", "lent by rank 1 step 1 (send)"});
}

TEST(PlanFault, returns_while_a_peer_may_still_read) {
  auto plans = lowered(Collective::all_reduce, "two_shot", 3);
  for (Reader& r : plans[0].readers[1]) r.tick = 1;  // they read it in their second
  expect_words(run({&plans}, {.lends = std::vector<bool>(3, true)}),
               {"rank 0 returns while rank 1 may still read", "rank 0 step 1", "lent"});
}

TEST(PlanFault, believes_that_a_broadcast_depends_on_everyone) {
  auto plans = lowered(Collective::broadcast, "pipelined_tree", 5);
  plans[1].everyone = true;
  expect_words(thrice(plans, {}),
               {"rank 1 ends operation 2", "rank 2 may not have", "does not depend on everyone"});
}

TEST(PlanFault, more_ranks_than_a_symbolic_run_has) {
  const auto plans = lowered(Collective::barrier, "dissemination", 129);
  const Status s = run({&plans}, {});
  EXPECT_EQ(s.code(), Code::unsupported);
  expect_words(s, {"128", "129"});
}

}  // namespace
}  // namespace anyccl::verify
