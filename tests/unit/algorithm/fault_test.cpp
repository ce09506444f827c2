// Planted faults in schedules: each is caught, and the message names rank, step and chunk.

#include "support.hpp"

namespace anyccl::verify {
namespace {

const Shape kTwo{Collective::all_reduce, 2};
const Slice kIn{Space::input}, kOut{Space::output};

Rank other(Rank me) {
  return Rank{1 - index(me)};
}

Status checked(const std::vector<Schedule>& ranks) {
  Terms terms;
  return check(ranks, terms).status();
}

TEST(ScheduleFault, receives_into_what_it_sends) {
  const auto ranks = written(kTwo, [](Builder& b, Rank me) {
    b.copy(kIn, kOut).send(other(me), kOut).recv_reduce(other(me), kOut, kOut);
  });
  expect_words(checked(ranks), {"over rendezvous", "deadlock", "rank 0 step 2 (recv_reduce)",
                                "overwrite output chunk 0", "rank 1 step"});
}

TEST(ScheduleFault, lost_dependency) {
  auto ranks = built(Collective::all_reduce, "ring", 4);
  ranks[2].steps[4].after.clear();
  expect_words(checked(ranks), {"race", "rank 2 step 3 (recv_reduce)", "step 4 (send)",
                                "output chunk 0", "neither waits"});
}

TEST(ScheduleFault, chunk_off_by_one_in_a_send) {
  auto ranks = built(Collective::all_reduce, "ring", 4);
  ranks[1].steps[0].src.first = 2;
  expect_words(checked(ranks), {"rank 2 step 1 (recv_reduce)", "output chunk 1",
                                "rank 1 step 0 (send)", "chunk 2"});
}

TEST(ScheduleFault, chunk_off_by_one_where_it_does_not_change_sizes) {
  auto ranks = written({Collective::barrier, 3}, [](Builder& b, Rank me) {
    const Slice heard = b.scratch(0);
    b.send(wrap(index(me) + 1, 3), kIn).recv_reduce(wrap(index(me) - 1, 3), kIn, heard);
    b.copy(heard, kOut);
  });
  expect_words(checked(ranks),
               {"rank 0 output chunk 0", "rank 0+2's chunk 0", "instead of the sum of all"});
}

TEST(ScheduleFault, counts_twice) {
  const auto ranks = written(kTwo, [](Builder& b, Rank me) {
    const Slice got = b.scratch(0);
    b.send(other(me), kIn).recv(other(me), got).copy(kIn, kOut);
    b.reduce(got, kOut).reduce(got, kOut);
  });
  expect_words(checked(ranks), {"rank 1 step 4 (reduce)", "output chunk 0", "twice"});
}

TEST(ScheduleFault, dropped_receive) {
  const auto ranks = written(kTwo, [](Builder& b, Rank me) { b.send(other(me), kIn); });
  expect_words(checked(ranks),
               {"rank 1 step 0 (send)", "input chunk 0", "rank 0", "never receives"});
}

TEST(ScheduleFault, dropped_send) {
  auto ranks = built(Collective::all_reduce, "ring", 4);
  ranks[1].steps.erase(ranks[1].steps.begin() + 10);
  expect_words(checked(ranks),
               {"rank 2 step 11 (recv)", "output chunk 0", "rank 1", "sends it nothing more"});
}

TEST(ScheduleFault, swapped_messages) {
  const auto ranks = written(
      kTwo,
      [](Builder& b, Rank me) {
        const Slice got = b.scratch(0, 2);
        const int swap = index(me);  // rank 1 expects the second chunk first
        b.send(other(me), {Space::input, 0}).send(other(me), {Space::input, 1});
        b.recv(other(me), {Space::scratch, static_cast<std::uint32_t>(swap)});
        b.recv(other(me), {Space::scratch, static_cast<std::uint32_t>(1 - swap)});
        b.copy({Space::input, 0, 2}, {Space::output, 0, 2}).reduce(got, {Space::output, 0, 2});
      },
      2);
  expect_words(checked(ranks), {"rank 1 step 2 (recv)", "scratch chunk 1", "rank 0 step 0 (send)"});
}

TEST(ScheduleFault, counts_that_differ) {
  const auto ranks = written(
      kTwo,
      [](Builder& b, Rank me) {
        if (index(me) == 0)
          b.send(Rank{1}, {Space::input, 0, 2});
        else
          b.recv(Rank{0}, {Space::output, 0, 1});
      },
      2);
  expect_words(checked(ranks), {"rank 1 step 0 (recv)", "output chunk 0", "rank 0 step 0 (send)",
                                "input chunks 0..1"});
}

TEST(ScheduleFault, missing_contribution) {
  auto ranks = built(Collective::all_reduce, "one_shot", 3);
  ranks[0].steps[0].peers = {Rank{1}, Rank{2}};
  ranks[1].steps[1].peers = {Rank{0}, Rank{1}};
  ranks[2].steps[0].peers = {Rank{0}};
  expect_words(checked(ranks),
               {"rank 1 output chunk 0", "rank 0+1's", "instead of the sum of all"});
}

TEST(ScheduleFault, own_order_of_summation) {
  auto ranks = built(Collective::all_reduce, "one_shot", 3);
  ranks[1].steps[1].peers = {Rank{1}, Rank{2}, Rank{0}};
  expect_words(checked(ranks), {"rank 1 output chunk 0", "rank 1+2+0's", "0+1+2", "other bits"});
}

TEST(ScheduleFault, in_place_without_a_copy) {
  const auto ranks = written({Collective::all_reduce, 3, Rank{0}, true}, [](Builder& b, Rank) {
    b.send(b.everyone(), kIn).recv_reduce(b.everyone(), kIn, kOut);
  });
  expect_words(checked(ranks), {"deadlock", "rank 0 step 1 (recv_reduce)", "output chunk 0"});
}

TEST(ScheduleFault, messages_that_depend_on_in_place) {
  const auto build = [](const Shape& s, Rank me) {
    Builder b(s, me, 1);
    const Slice got = b.scratch(0);
    if (s.in_place)
      b.send(other(me), kIn);
    else
      b.send(PeerList{me, other(me)}, {Space::input, 0, 1, 1});
    b.recv(other(me), got).copy(kIn, kOut).reduce(got, kOut);
    return std::move(b).finish();
  };
  const Algorithm a{"two_faced", Collective::all_reduce, any_shape, nullptr, build};
  expect_words(check_algorithm(a, 2, 2).status(),
               {"all_reduce/two_faced with 2 ranks, in place", "rank 0 step 0 (send)",
                "when the call is not in place"});
}

TEST(ScheduleFault, relays_blocks_whose_size_it_does_not_know) {
  const auto ranks = written({Collective::all_to_all_v, 3}, [](Builder& b, Rank me) {
    const Slice foreign = b.scratch((uindex(me) + 1) % 3 * 3 + (uindex(me) + 2) % 3);
    b.copy(kIn, foreign);
  });
  expect_words(checked(ranks),
               {"rank 0 step 0 (copy)", "scratch chunk 0", "size only other ranks know"});
}

TEST(ScheduleFault, cyclic_receives) {
  const auto ranks = written(kTwo, [](Builder& b, Rank me) {
    const Slice got = b.scratch(0);
    b.recv(other(me), got).send(other(me), kIn).copy(kIn, kOut).reduce(got, kOut);
  });
  expect_words(checked(ranks), {"deadlock", "rank 0 step 0 (recv)", "waits for rank 1",
                                "scratch chunk 0", "rank 1 step 0"});
}

TEST(ScheduleFault, chunks_that_do_not_exist) {
  const auto beyond = [](Slice src, Slice dst) {
    return checked(written(
        kTwo, [&](Builder& b, Rank) { b.scratch(0), b.copy(src, dst); }, 2));
  };
  expect_words(beyond(kIn, {Space::scratch, 1}), {"rank 0 step 0 (copy)", "scratch chunk 1 of 1"});
  expect_words(beyond({Space::input, 0, 3}, {Space::output, 0, 3}), {"input chunks 0..2 of 2"});
}

TEST(ScheduleFault, reads_what_it_is_about_to_overwrite) {
  const auto ranks = written(
      {Collective::all_reduce, 1},
      [](Builder& b, Rank) {
        b.copy({Space::output, 0, 2}, {Space::output, 1, 2});
      },
      3);
  expect_words(checked(ranks),
               {"rank 0 step 0 (copy)", "reads output chunks 0..1", "writes output chunks 1..2"});
}

TEST(ScheduleFault, uses_the_input_of_a_rank_that_has_none) {
  const auto ranks =
      written({Collective::broadcast, 2}, [](Builder& b, Rank) { b.copy(kIn, kOut); });
  expect_words(checked(ranks), {"rank 1 step 0 (copy)", "input chunk 0 of 0"});
}

TEST(ScheduleFault, names_ranks_that_do_not_exist_or_one_twice) {
  const auto send = [](PeerList to) {
    return checked(written(kTwo, [&](Builder& b, Rank) { b.send(to, kIn); }));
  };
  expect_words(send({Rank{2}}), {"rank 0 step 0 (send)", "names rank 2 of 2"});
  expect_words(send({Rank{1}, Rank{1}}), {"rank 0 step 0 (send)", "input chunk 0", "rank 1 twice"});
}

TEST(ScheduleFault, promises_too_little) {
  Algorithm a = *find_algorithm(Collective::all_reduce, "two_shot");
  a.cost = [](const Shape&) { return Cost{1, 1, 1, 1}; };
  expect_words(
      check_algorithm(a, 4, 4).status(),
      {"all_reduce/two_shot with 4 ranks", "takes 2 rounds", "sends 6 of 4 chunks", "promises 1"});
}

TEST(ScheduleFault, passes_on_a_block_whose_size_only_others_know) {
  Algorithm a = *find_algorithm(Collective::gather, "binomial");
  a.collective = Collective::gather_v;
  expect_words(check_algorithm(a, 4, 4).status(),
               {"gather_v/binomial", "whose size only other ranks know"});
}

TEST(ScheduleFault, promises_an_order_that_it_has_not) {
  Algorithm ring = *find_algorithm(Collective::all_reduce, "ring");
  ring.order = the_tree;
  expect_words(check_algorithm(ring, 3, 3).status(),
               {"all_reduce/ring with 3 ranks", "by position", "promises tree"});
  ring.order = by_placement;
  expect_words(check_algorithm(ring, 3, 3).status(), {"by position", "promises placement"});
  Algorithm doubling = *find_algorithm(Collective::all_reduce, "recursive_doubling");
  doubling.order = the_tree;
  expect_words(check_algorithm(doubling, 5, 5).status(), {"by placement", "promises tree"});
  Algorithm climb = *find_algorithm(Collective::all_reduce, "reduce_broadcast");
  climb.order = the_tree_in_one_step;
  expect_words(check_algorithm(climb, 3, 3).status(), {"by tree", "promises tree_in_one_step"});
}

TEST(ScheduleFault, promises_one_order_for_all_roots) {
  Algorithm a = *find_algorithm(Collective::reduce, "pipelined_chain");
  a.order = by_placement;
  expect_words(check_algorithm(a, 4, 4).status(), {"root 1", "by position", "promises placement"});
}

TEST(ScheduleFault, gets_the_wrong_ranks_block) {
  auto ranks = written({Collective::broadcast, 2, Rank{0}}, [](Builder& b, Rank me) {
    if (me == Rank{0}) b.copy(kIn, kOut);
  });
  expect_words(checked(ranks), {"rank 1 output chunk 0", "nothing", "rank 0's chunk 0"});
}

}  // namespace
}  // namespace anyccl::verify
