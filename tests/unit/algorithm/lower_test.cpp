// What schedules become when they are lowered.

#include <algorithm>

#include "support.hpp"

namespace anyccl::verify {
namespace {

constexpr int kCombine = PlanStep::combine, kAccumulate = PlanStep::accumulate,
              kStore = PlanStep::store, kPublish = PlanStep::publish;

Plan lowered(std::string_view name, Shape shape, Rank me = Rank{0}, std::uint32_t slots = 8) {
  auto plan = lower(build_all(*find_algorithm(shape.collective, name), shape), me, slots);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  return *plan;
}
Shape all_reduce(int n, bool in_place = false) {
  return {Collective::all_reduce, n, Rank{0}, in_place};
}

std::vector<int> flags(const Plan& plan) {
  std::vector<int> flags;
  for (const PlanStep& s : plan.steps) flags.push_back(s.flags & ~PlanStep::lendable);
  return flags;
}
// Of each publication.
std::vector<bool> lendable(const Plan& plan) {
  std::vector<bool> result(plan.published.size());
  for (const PlanStep& s : plan.steps)
    if ((s.flags & PlanStep::publish) != 0)
      result[s.publication] = (s.flags & PlanStep::lendable) != 0;
  return result;
}

TEST(Lower, ring_steps_receive_reduce_and_send_at_once) {
  EXPECT_EQ(flags(lowered("ring", all_reduce(4))),
            (std::vector<int>{kPublish, kCombine | kPublish, kCombine | kPublish,
                              kCombine | kStore | kPublish, kStore | kPublish, kStore | kPublish,
                              kStore}));
}

TEST(Lower, ring_halves_its_steps) {
  const Plan ring = lowered("ring", all_reduce(8));
  EXPECT_EQ(ring.schedule.steps.size(), 28U);
  EXPECT_EQ(ring.steps.size(), 15U);
}

TEST(Lower, a_received_chunk_is_added_without_being_stored_first) {
  const Plan plan = lowered("recursive_doubling", all_reduce(4));
  EXPECT_EQ(flags(plan),
            (std::vector<int>{kStore | kPublish, kCombine | kAccumulate | kStore | kPublish,
                              kCombine | kAccumulate | kStore}));
  EXPECT_EQ(plan.schedule.chunks(Space::scratch), 0U);
}

TEST(Lower, a_message_that_is_passed_on_and_not_kept_is_not_lent) {
  const Slice in{Space::input}, out{Space::output};
  const auto ranks = written({Collective::broadcast, 3, Rank{0}}, [&](Builder& b, Rank me) {
    if (me == Rank{0}) b.copy(in, out).send(Rank{1}, in).send(Rank{1}, in);
    const Slice passed = b.scratch(0);
    if (me == Rank{1}) b.recv(Rank{0}, passed).send(Rank{2}, passed).recv(Rank{0}, out);
    if (me == Rank{2}) b.recv(Rank{1}, out);
  });
  const auto plan = lower(ranks, Rank{1}, 8);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_EQ(flags(*plan), (std::vector<int>{kPublish, kStore}));
  EXPECT_EQ(lendable(*plan), (std::vector<bool>{false}));
}

TEST(Lower, one_shot_in_place_does_as_out_of_place) {
  const Plan in_place = lowered("one_shot", all_reduce(4, true));
  EXPECT_EQ(flags(in_place), flags(lowered("one_shot", all_reduce(4))));
  EXPECT_EQ(in_place.schedule.chunks(Space::scratch), 0U);
}

TEST(Lower, only_memory_that_stays_until_it_is_read_may_be_lent) {
  using Lendable = std::vector<bool>;
  EXPECT_EQ(lendable(lowered("one_shot", all_reduce(4))), Lendable{true});
  EXPECT_EQ(lendable(lowered("one_shot", all_reduce(4, true))), Lendable{false});
  EXPECT_EQ(lendable(lowered("two_shot", all_reduce(4))), (Lendable{true, true}));
  // Each piece of the input is overwritten with the sum that its reader made of it.
  EXPECT_EQ(lendable(lowered("two_shot", all_reduce(4, true))), (Lendable{true, true}));
  EXPECT_EQ(lendable(lowered("recursive_doubling", all_reduce(4))), (Lendable{false, false}));
  // What is only passed on in a ring is in no memory of its own; sums and copies stay.
  EXPECT_EQ(lendable(lowered("ring", all_reduce(4))),
            (Lendable{true, false, false, true, true, true}));
}

TEST(Lower, a_barrier_lends_nothing) {
  EXPECT_EQ(lendable(lowered("dissemination", {Collective::barrier, 4})),
            (std::vector<bool>{false, false}));
}

TEST(Lower, readers_know_their_part_and_when_they_have_read_it) {
  const Plan plan = lowered("two_shot", all_reduce(4), Rank{1});
  ASSERT_EQ(plan.readers.size(), 2U);
  EXPECT_EQ(plan.published[0], (std::vector<Origin>{0, 1, 2, 3}));
  EXPECT_EQ(plan.published[1], std::vector<Origin>{1});
  const Reader& of_inputs = plan.readers[0][2];  // ranks 0, 2, 3
  EXPECT_EQ(of_inputs.rank, 3);
  EXPECT_EQ(of_inputs.offset, 3U);
  EXPECT_EQ(of_inputs.count, 1U);
  EXPECT_EQ(of_inputs.tick, 1);
  EXPECT_EQ(of_inputs.ticks, 2);
  const Reader& of_sums = plan.readers[1][2];
  EXPECT_EQ(of_sums.offset, 0U);
  EXPECT_EQ(of_sums.tick, 2);
}

TEST(Lower, operands_name_the_publication_and_what_is_in_it) {
  const Plan plan = lowered("two_shot", all_reduce(4), Rank{1});
  const PlanStep& sum = plan.steps[1];
  const Ref& from_3 = plan.refs[sum.first_ref + 3];
  EXPECT_EQ(from_3.rank, 3);
  EXPECT_EQ(from_3.publication, 0);
  EXPECT_EQ(from_3.offset, 1U);
  EXPECT_EQ(plan.read_from[sum.first_ref + 3], (std::vector<Origin>{0, 1, 2, 3}));
  EXPECT_TRUE(plan.read_from[sum.first_ref + 1].empty());  // its own
}

TEST(Lower, all_to_all_v_publishes_once_per_reader) {
  const Plan plan = lowered("direct", {Collective::all_to_all_v, 4}, Rank{1});
  EXPECT_EQ(flags(plan), (std::vector<int>{kPublish, kPublish, kPublish, kStore, kStore}));
  ASSERT_EQ(plan.readers.size(), 3U);
  for (std::size_t p = 0; p < 3; ++p) {
    const int reader = (1 + static_cast<int>(p) + 1) % 4;
    ASSERT_EQ(plan.readers[p].size(), 1U);
    EXPECT_EQ(plan.readers[p][0].rank, reader);
    EXPECT_EQ(plan.published[p], std::vector<Origin>{1 * 4 + static_cast<Origin>(reader)});
  }
  EXPECT_EQ(plan.read_from[plan.steps[3].first_ref], std::vector<Origin>{0 * 4 + 1});
}

TEST(Lower, all_to_all_v_in_place_keeps_its_copy) {
  // Blocks of different sizes may overlap in ways that only their owner knows.
  const Plan plan = lowered("direct", {Collective::all_to_all_v, 4, Rank{0}, true});
  EXPECT_EQ(plan.steps[0].flags & kStore, kStore);
  EXPECT_EQ(plan.schedule.chunks(Space::scratch), 3U);
}

TEST(Lower, nothing_that_peers_see_depends_on_in_place) {
  const int n = 8;
  for (const Algorithm* a : algorithms_for(n)) {
    const Shape out{a->collective, n}, in{a->collective, n, Rank{0}, true};
    const Plan x = lowered(a->name, out, Rank{2}), y = lowered(a->name, in, Rank{2});
    EXPECT_EQ(x.publications, y.publications) << id(*a);
    EXPECT_EQ(x.published, y.published) << id(*a);
    EXPECT_EQ(x.ticks, y.ticks) << id(*a);
    EXPECT_EQ(x.posts_each, y.posts_each) << id(*a);
    for (std::size_t p = 0; p < x.readers.size(); ++p)
      for (std::size_t i = 0; i < x.readers[p].size(); ++i)
        EXPECT_EQ(x.readers[p][i].tick, y.readers[p][i].tick) << id(*a);
  }
}

TEST(Lower, progress_is_posted_at_the_end_when_there_are_slots_and_nothing_to_lend) {
  const Shape barrier{Collective::barrier, 16};
  EXPECT_FALSE(lowered("dissemination", barrier, Rank{0}, 4).posts_each);
  EXPECT_TRUE(lowered("dissemination", barrier, Rank{0}, 3).posts_each);
  EXPECT_TRUE(lowered("one_shot", all_reduce(4)).posts_each);
  EXPECT_FALSE(lowered("one_shot", all_reduce(1)).posts_each);
}

TEST(Lower, one_rank_alone_only_copies) {
  for (const Algorithm* a : algorithms_for(1)) {
    const bool has_result = blocks_held(a->collective, 1, true, Space::output) > 0;
    EXPECT_EQ(flags(lowered(a->name, {a->collective, 1})), std::vector<int>(has_result, kStore))
        << id(*a);
  }
}

TEST(Lower, only_what_has_neither_root_nor_prefix_depends_on_everyone) {
  for (const Algorithm* a : algorithms_for(5))
    EXPECT_EQ(lowered(a->name, {a->collective, 5}).everyone,
              !is_rooted(a->collective) && !is_prefix(a->collective))
        << id(*a);
}

TEST(Lower, refuses_more_ranks_than_a_plan_can_name) {
  const auto ranks = built(Collective::broadcast, "flat", 65536);
  const auto plan = lower(ranks, Rank{1}, 8);
  EXPECT_EQ(plan.status().code(), Code::unsupported);
  expect_words(plan.status(), {"broadcast over 65536 ranks", "at most 65535"});
}

}  // namespace
}  // namespace anyccl::verify
