// Which algorithm is taken, and by what.

#include "framework/tuning/tuner.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

namespace anyccl {
namespace {

constexpr std::size_t kKiB = 1024;

TunerQuery query(Collective collective, int ranks, std::size_t bytes, bool network = false) {
  return {{.collective = collective, .size = ranks}, bytes, network};
}

std::string row(const std::string& algorithm, int bytes, double us) {
  std::ostringstream text;
  text << R"({"algorithm":")" << algorithm << R"(","bytes":)" << bytes << R"(,"median_us":)" << us
       << R"(,"ranks":4,"protocol":"Simple","transport":"shm","inplace":false})";
  return text.str();
}

std::string array(const std::vector<std::string>& rows) {
  std::ostringstream text;
  for (const std::string& r : rows) text << (text.tellp() > 0 ? ',' : '[') << r;
  text << ']';
  return text.str();
}

TunerTable table_of(const std::vector<std::string>& rows) {
  const Result<TunerTable> table = TunerTable::parse(array(rows), "mine.json");
  EXPECT_TRUE(table.ok()) << table.status().message();
  return table.ok() ? *table : TunerTable("");
}

struct Chosen {
  std::string_view algorithm;
  std::string reason;
};

Chosen with_table(const TunerQuery& q, const TunerTable& table) {
  const TunerPolicy policy{.tables = {std::make_shared<const TunerTable>(table)}};
  const Result<Choice> choice = select_algorithm(q, policy);
  EXPECT_TRUE(choice.ok()) << choice.status().message();
  return {choice->algorithm->name, reason(*choice)};
}

TEST(Tuner, counts_the_fastest_protocol_of_a_size) {
  std::string lines = row("all_reduce/ring", 1024, 2);
  lines.replace(lines.find("Simple"), 6, "LL128");
  const TunerTable table = table_of({row("all_reduce/ring", 1024, 10), lines});
  EXPECT_EQ(*table.measured_us(*find_algorithm(Collective::all_reduce, "ring"),
                               query(Collective::all_reduce, 4, 1024)),
            2.0);
}

TEST(Tuner, takes_something_possible_for_every_collective_size_and_network) {
  for (const Algorithm* a : all_algorithms())
    for (const int ranks : {1, 2, 3, 4, 7, 8, 33})
      for (const std::size_t bytes : {0UL, 8UL, 64 * kKiB, 64UL << 20})
        for (const bool network : {false, true}) {
          const Result<Choice> choice =
              select_algorithm(query(a->collective, ranks, bytes, network), {});
          ASSERT_TRUE(choice.ok()) << choice.status().message();
          EXPECT_EQ(choice->algorithm->collective, a->collective);
          EXPECT_GT(choice->tile_bytes, 0U);
          EXPECT_FALSE(reason(*choice).empty());
        }
}

TEST(Tuner, takes_what_the_user_names_where_there_is_such_an_algorithm) {
  const TunerPolicy ring{.environment = {.algorithms = *AlgorithmRules::parse("ring")}};
  EXPECT_EQ(select_algorithm(query(Collective::all_reduce, 4, 8), ring)->algorithm->name, "ring");
  EXPECT_EQ(reason(*select_algorithm(query(Collective::all_reduce, 4, 8), ring)), "ANYCCL_ALGO");
  EXPECT_EQ(select_algorithm(query(Collective::barrier, 4, 0), ring)->algorithm->name, "one_shot");
  const TunerPolicy hypercube{.environment = {.algorithms = *AlgorithmRules::parse("hypercube")}};
  const Status refused = select_algorithm(query(Collective::all_reduce, 6, 8), hypercube).status();
  EXPECT_EQ(refused.code(), Code::unsupported);
  EXPECT_NE(refused.message().find("hypercube does not support 6 ranks"), std::string::npos);
}

TEST(Tuner, takes_nothing_that_the_user_excludes) {
  const auto chosen = [](const char* rules, std::size_t bytes) {
    return select_algorithm(query(Collective::all_reduce, 4, bytes),
                            {.environment = {.algorithms = *AlgorithmRules::parse(rules)}});
  };
  EXPECT_EQ(chosen("", 8)->algorithm->name, "one_shot");
  EXPECT_NE(chosen("^one_shot", 8)->algorithm->name, "one_shot");
  EXPECT_EQ(chosen("^one_shot", 8)->algorithm->collective, Collective::all_reduce);
  EXPECT_NE(reason(*chosen("^one_shot", 8)).find("excludes"), std::string::npos);
  EXPECT_EQ(chosen("^one_shot@4K-", 8)->algorithm->name, "one_shot");
  std::string all;
  for (const Algorithm* a : all_algorithms())
    if (a->collective == Collective::all_reduce)
      all += (all.empty() ? "^" : ",^") + std::string(a->name);
  EXPECT_EQ(chosen(all.c_str(), 8).status().code(), Code::unsupported);

  TunerTable table = table_of({row("all_reduce/two_shot", 8, 1), row("all_reduce/ring", 8, 2)});
  const TunerPolicy policy{.environment = {.algorithms = *AlgorithmRules::parse("^two_shot")},
                           .tables = {std::make_shared<const TunerTable>(std::move(table))}};
  EXPECT_NE(select_algorithm(query(Collective::all_reduce, 4, 8), policy)->algorithm->name,
            "two_shot");
}

TEST(Tuner, asks_the_environment_first_then_the_call_then_the_communicator) {
  const auto chosen = [](const char* environment, const char* call, const char* communicator) {
    TunerPolicy policy;
    policy.environment.algorithms = *AlgorithmRules::parse(environment);
    policy.communicator.algorithms = *AlgorithmRules::parse(communicator, "config->algo");
    CallSettings settings;
    settings.algorithms = *AlgorithmRules::parse(call, "config->algSelection");
    const auto choice = select_algorithm(query(Collective::all_reduce, 4, 8), policy, &settings);
    return choice.ok() ? std::string(choice->algorithm->name) + " by " + reason(*choice)
                       : std::string(choice.status().message());
  };
  EXPECT_EQ(chosen("ring", "two_shot", "bcube"), "ring by ANYCCL_ALGO");
  EXPECT_EQ(chosen("", "two_shot", "bcube"), "two_shot by config->algSelection");
  EXPECT_EQ(chosen("", "", "bcube"), "bcube by config->algo");
  EXPECT_EQ(chosen("broadcast:flat", "two_shot", ""), "two_shot by config->algSelection")
      << "a rule for something else says nothing";
  EXPECT_EQ(chosen("ring@1M-", "two_shot", ""), "two_shot by config->algSelection");
  EXPECT_EQ(chosen("^two_shot", "two_shot", "bcube"), "bcube by config->algo") << "excluded before";
  EXPECT_EQ(chosen("^ring", "", "ring,bcube"), "bcube by config->algo");
  EXPECT_EQ(chosen("", "^bcube", "bcube").find("one_shot"), 0U);
}

TEST(Tuner, of_a_call_takes_something_else_only_where_nothing_is_forced) {
  const auto chosen = [](Collective collective, const char* algorithms, bool forced) {
    CallSettings settings;
    settings.algorithms = *AlgorithmRules::parse(algorithms, "config->algSelection");
    settings.forced = forced;
    return select_algorithm(query(collective, 6, 8), {}, &settings);
  };
  const Status hypercube = chosen(Collective::all_reduce, "hypercube", true).status();
  EXPECT_EQ(hypercube.code(), Code::unsupported);
  EXPECT_EQ(hypercube.message(),
            "all_reduce/hypercube does not support 6 ranks: it needs a power of two "
            "(config->algSelection)");
  EXPECT_EQ(chosen(Collective::all_reduce, "hypercube", false)->algorithm->name, "one_shot");
  EXPECT_EQ(chosen(Collective::barrier, "ring", true).status().message(),
            "config->algSelection names no algorithm of barrier");
  EXPECT_TRUE(chosen(Collective::barrier, "ring", false).ok());
  EXPECT_FALSE(chosen(Collective::barrier, "^one_shot,^central,^dissemination", true).ok());
  EXPECT_TRUE(chosen(Collective::barrier, "^one_shot,^central,^dissemination", false).ok());
}

TEST(Tuner, limits_what_is_under_way_by_the_first_that_says_how_much) {
  const auto tile = [](std::size_t environment, std::size_t call, std::size_t communicator) {
    TunerPolicy policy;
    policy.environment.chunk_bytes = environment;
    policy.communicator.chunk_bytes = communicator;
    CallSettings settings;
    settings.chunk_bytes = call;
    return select_algorithm(query(Collective::all_reduce, 4, 1 << 20), policy, &settings)
        ->tile_bytes;
  };
  const std::size_t usual = tile(0, 0, 0);
  EXPECT_EQ(tile(8 * kKiB, 16 * kKiB, 32 * kKiB), 8 * kKiB);
  EXPECT_EQ(tile(0, 16 * kKiB, 32 * kKiB), 16 * kKiB);
  EXPECT_EQ(tile(0, 0, 32 * kKiB), 32 * kKiB);
  EXPECT_EQ(tile(0, 2 * usual, 0), usual) << "it is an upper bound";
}

TEST(Tuner, takes_every_algorithm_of_the_catalog_where_it_is_named) {
  for (const Algorithm* a : all_algorithms()) {
    const TunerPolicy named{
        .environment = {.algorithms = *AlgorithmRules::parse(std::string(name(a->collective)) +
                                                             ":" + std::string(a->name))}};
    int taken = 0;
    for (int ranks = 1; ranks <= 16; ++ranks) {
      const auto choice = select_algorithm(query(a->collective, ranks, 4 * kKiB), named);
      EXPECT_EQ(choice.ok(), a->supports({.size = ranks})) << id(*a) << " of " << ranks;
      taken += choice.ok() ? 1 : 0;
      if (choice.ok()) {
        EXPECT_EQ(choice->algorithm, a);
      } else {
        EXPECT_NE(choice.status().message().find(fmt::format("it needs {}", a->needs)),
                  std::string::npos)
            << choice.status().message();
      }
    }
    EXPECT_GT(taken, 0) << id(*a);
    EXPECT_EQ(taken < 16, !a->needs.empty()) << id(*a) << " says what it needs, if it needs it";
  }
}

TEST(Tuner, speaks_of_measured_crossings_only_where_they_were_measured) {
  const auto measured = [](Collective collective, int ranks, int per_core, std::size_t bytes,
                           bool network = false) {
    TunerQuery q = query(collective, ranks, bytes, network);
    q.ranks_per_core = per_core;
    return reason(*select_algorithm(q, {})) == "built in: measured crossings";
  };
  EXPECT_TRUE(measured(Collective::all_reduce, 2, 1, 8));
  EXPECT_TRUE(measured(Collective::all_reduce, 4, 2, 8));
  EXPECT_TRUE(measured(Collective::all_reduce, 8, 4, 64 * kKiB));
  EXPECT_TRUE(measured(Collective::all_reduce, 32, 16, 64 * kKiB));
  EXPECT_TRUE(measured(Collective::all_reduce, 2, 1, 8, true));
  EXPECT_FALSE(measured(Collective::all_reduce, 8, 1, 8)) << "never with a core each";
  EXPECT_FALSE(measured(Collective::all_reduce, 5, 3, 8));
  EXPECT_FALSE(measured(Collective::all_reduce, 24, 12, 8));
  EXPECT_FALSE(measured(Collective::all_reduce, 16, 1, 8, true));
  EXPECT_TRUE(measured(Collective::barrier, 8, 4, 0));
  EXPECT_FALSE(measured(Collective::barrier, 32, 16, 0));
  EXPECT_FALSE(measured(Collective::barrier, 2, 1, 0, true));
  EXPECT_TRUE(measured(Collective::broadcast, 8, 4, 64 * kKiB));
  EXPECT_FALSE(measured(Collective::broadcast, 8, 4, 8));
  EXPECT_FALSE(measured(Collective::broadcast, 4, 2, 64 * kKiB));
  for (const Algorithm* a : all_algorithms()) {
    const bool may = a->collective == Collective::all_reduce ||
                     a->collective == Collective::barrier || a->collective == Collective::broadcast;
    for (const int ranks : {2, 3, 4, 8, 16})
      for (const bool network : {false, true})
        EXPECT_TRUE(may || !measured(a->collective, ranks, 2, 4 * kKiB, network)) << id(*a);
  }
}

TEST(Tuner, knows_groups_of_many_ranks_and_oversubscription) {
  const auto chosen = [](int ranks, std::size_t bytes, int per_core, int groups = 1) {
    TunerQuery q = query(Collective::all_reduce, ranks, bytes);
    q.ranks_per_core = per_core;
    for (int r = 0; groups > 1 && r < ranks; ++r) q.shape.host_of.push_back(r * groups / ranks);
    return select_algorithm(q, {})->algorithm->name;
  };
  EXPECT_EQ(chosen(16, 8, 1), "one_shot");
  EXPECT_EQ(chosen(16, 64 * kKiB, 1, 2), "two_shot");
  EXPECT_EQ(chosen(32, 8, 1), "recursive_multiplying");
  EXPECT_EQ(chosen(32, 64 * kKiB, 1), "two_shot");
  EXPECT_EQ(chosen(32, 64 * kKiB, 1, 4), "two_level");
  EXPECT_EQ(chosen(32, 64 * kKiB, 1, 32), "two_shot") << "nobody is near anybody";
  EXPECT_EQ(chosen(32, 8, 4, 4), "one_shot");
  EXPECT_EQ(chosen(32, 64 * kKiB, 4, 4), "reduce_broadcast");
  EXPECT_EQ(chosen(12, 64 * kKiB, 4), "reduce_broadcast");
  EXPECT_EQ(chosen(12, 1024 * kKiB, 4), "two_shot");
  EXPECT_EQ(chosen(8, 64 * kKiB, 4), "two_shot");
  EXPECT_EQ(chosen(12, 64 * kKiB, 3), "two_shot") << "not measured";
}

TEST(Tuner, lets_two_ranks_meet_in_one_round_over_a_network) {
  const auto chosen = [](int ranks, std::size_t bytes) {
    return select_algorithm(query(Collective::all_reduce, ranks, bytes, true), {})->algorithm->name;
  };
  EXPECT_EQ(chosen(2, 8), "one_shot");
  EXPECT_EQ(chosen(2, 64 << 20), "one_shot") << "it sends no more than two_shot";
  EXPECT_EQ(chosen(3, 4 * kKiB), "one_shot");
  EXPECT_EQ(chosen(3, 64 << 20), "two_shot");
}

TEST(Tuner, takes_one_leader_for_each_host_as_long_as_little_leaves_it) {
  const auto chosen = [](std::vector<int> hosts, std::size_t bytes) {
    TunerQuery q = query(Collective::all_reduce, static_cast<int>(hosts.size()), bytes, true);
    q.shape.host_of = std::move(hosts);
    return select_algorithm(q, {})->algorithm->name;
  };
  EXPECT_EQ(chosen({0, 0, 0, 0, 1, 1, 1, 1}, 8), "single_leader");
  EXPECT_EQ(chosen({0, 0, 0, 0, 1, 1, 1, 1}, 64 * kKiB), "single_leader");
  EXPECT_EQ(chosen({0, 0, 0, 0, 1, 1, 1, 1}, 64 * kKiB + 1), "two_level");
  EXPECT_EQ(chosen({0, 1, 2, 0, 2, 0}, 32 * kKiB), "single_leader");
  EXPECT_EQ(chosen({0, 1, 2, 0, 2, 0}, 64 * kKiB), "two_level") << "sent to each other host";
  EXPECT_EQ(chosen({0, 1, 2, 3}, 8), "one_shot") << "nobody is near anybody";
  EXPECT_EQ(chosen({0, 0, 0, 0}, 8), "one_shot") << "all are near each other";
}

TEST(Tuner, takes_what_crosses_to_each_host_once_where_hosts_have_several_ranks) {
  const auto chosen = [](Collective collective, std::vector<int> hosts, std::size_t bytes) {
    TunerQuery q = query(collective, static_cast<int>(hosts.size()), bytes, true);
    q.shape.host_of = std::move(hosts);
    return select_algorithm(q, {})->algorithm->name;
  };
  for (const Collective collective :
       {Collective::broadcast, Collective::all_gather, Collective::all_gather_v,
        Collective::reduce_scatter, Collective::reduce_scatter_v})
    for (const std::size_t bytes : {8UL, 8UL << 20}) {
      EXPECT_EQ(chosen(collective, {0, 0, 1, 2, 2}, bytes), "two_level") << name(collective);
      EXPECT_NE(chosen(collective, {0, 1, 2, 3, 4}, bytes), "two_level") << name(collective);
    }
}

TEST(Tuner, lets_few_or_oversubscribed_ranks_of_one_host_meet_in_one_round) {
  const auto chosen = [](Collective collective, int ranks, int per_core, bool network) {
    TunerQuery q = query(collective, ranks, 64 * kKiB, network);
    q.ranks_per_core = per_core;
    return select_algorithm(q, {})->algorithm->name;
  };
  EXPECT_EQ(chosen(Collective::barrier, 8, 1, false), "one_shot");
  EXPECT_EQ(chosen(Collective::barrier, 9, 1, false), "dissemination");
  EXPECT_EQ(chosen(Collective::barrier, 32, 2, false), "one_shot");
  EXPECT_EQ(chosen(Collective::barrier, 4, 2, true), "dissemination");
  EXPECT_EQ(chosen(Collective::broadcast, 8, 1, false), "flat");
  EXPECT_EQ(chosen(Collective::broadcast, 9, 1, false), "pipelined_tree");
  EXPECT_EQ(chosen(Collective::broadcast, 32, 2, false), "flat");
  EXPECT_EQ(chosen(Collective::broadcast, 8, 2, true), "pipelined_tree");
}

TEST(Tuner, takes_the_fastest_that_was_measured_between_the_sizes) {
  const TunerTable table =
      table_of({row("all_reduce/ring", 1024, 10), row("all_reduce/ring", 1048576, 100),
                row("all_reduce/one_shot", 1024, 1), row("all_reduce/one_shot", 1048576, 1000)});
  const auto at = [&](std::size_t bytes) {
    return with_table(query(Collective::all_reduce, 4, bytes), table).algorithm;
  };
  EXPECT_EQ(at(8), "one_shot") << "as at the smallest size";
  EXPECT_EQ(at(8 * kKiB), "one_shot");
  EXPECT_EQ(at(64 * kKiB), "ring");
  EXPECT_EQ(at(64 << 20), "ring");
  // Both lines cross at 32 KiB, the middle of the two sizes.
  const TunerQuery middle = query(Collective::all_reduce, 4, 32 * kKiB);
  EXPECT_NEAR(*table.measured_us(*find_algorithm(Collective::all_reduce, "ring"), middle),
              std::sqrt(10.0 * 100.0), 1e-6);
}

TEST(Tuner, goes_by_what_is_built_in_where_nothing_was_measured) {
  const TunerTable table =
      table_of({row("all_reduce/ring", 1024, 1), row("all_reduce/one_shot", 1024, 2)});
  const auto chosen = [&](const TunerQuery& q) { return with_table(q, table).reason; };
  EXPECT_EQ(chosen(query(Collective::all_reduce, 4, 1024)), "fastest in mine.json");
  EXPECT_NE(chosen(query(Collective::all_reduce, 5, 1024)), "fastest in mine.json");
  EXPECT_NE(chosen(query(Collective::all_reduce, 4, 1024, true)), "fastest in mine.json");
  EXPECT_NE(chosen(query(Collective::broadcast, 4, 1024)), "fastest in mine.json");
}

TEST(Tuner, keeps_what_is_built_in_unless_another_is_clearly_faster) {
  const auto chosen = [](double ring_us) {
    const TunerTable table =
        table_of({row("all_reduce/one_shot", 8, 10), row("all_reduce/ring", 8, ring_us)});
    TunerQuery q = query(Collective::all_reduce, 4, 8);
    q.ranks_per_core = 2;
    return with_table(q, table);
  };
  EXPECT_EQ(chosen(8).algorithm, "ring");
  EXPECT_EQ(chosen(9.5).algorithm, "one_shot");
  EXPECT_EQ(chosen(9.5).reason,
            "built in: measured crossings, and mine.json has nothing clearly faster");
}

TEST(Tuner, asks_the_first_table_that_can_compare) {
  const auto with = [](double ring_us, const char* name) {
    auto table = std::make_shared<TunerTable>(name);
    table->add(*find_algorithm(Collective::all_reduce, "ring"), 4, false, 8, ring_us);
    table->add(*find_algorithm(Collective::all_reduce, "one_shot"), 4, false, 8, 2);
    return table;
  };
  const auto single = std::make_shared<TunerTable>("single");
  single->add(*find_algorithm(Collective::all_reduce, "two_shot"), 4, false, 8, 0.1);
  const TunerPolicy policy{.tables = {single, with(1, "first"), with(4, "second")}};
  EXPECT_EQ(reason(*select_algorithm(query(Collective::all_reduce, 4, 8), policy)),
            "fastest in first");
}

TEST(Tuner, takes_what_is_being_measured_before_anything_else) {
  const TunerPolicy measured{.measured = find_algorithm(Collective::all_reduce, "two_shot"),
                             .environment = {.algorithms = *AlgorithmRules::parse("ring")}};
  EXPECT_EQ(select_algorithm(query(Collective::all_reduce, 4, 8), measured)->algorithm->name,
            "two_shot");
  EXPECT_EQ(select_algorithm(query(Collective::broadcast, 4, 8), measured)->algorithm->name,
            "flat");
}

TEST(Tuner, compares_blocks_with_blocks) {
  const TunerTable table = table_of({row("all_gather/ring", 4096, 3)});  // four of 1 KiB
  const auto& ring = *find_algorithm(Collective::all_gather, "ring");
  EXPECT_EQ(table.measured_us(ring, query(Collective::all_gather, 4, 1024)), 3.0);
  EXPECT_EQ(table.measured_us(ring, query(Collective::all_gather, 4, 2048)), 6.0);
}

TEST(TunerTable, knows_what_was_measured_for_less_than_a_byte_of_each_block) {
  TunerTable table("small");
  const auto& ring = *find_algorithm(Collective::all_gather, "ring");
  table.add(ring, 4, false, 0.5, 2);
  table.add(ring, 4, false, 1, 3);
  EXPECT_EQ(table.measured_us(ring, query(Collective::all_gather, 4, 1)), 3.0);
}

TEST(TunerTable, refuses_what_is_not_measurements) {
  const auto text_of = [](const std::string& text) {
    const Status status = TunerTable::parse(text, "mine.json").status();
    EXPECT_EQ(status.code(), Code::invalid_argument) << text;
    EXPECT_NE(status.message().find("mine.json"), std::string::npos) << status.message();
    return std::string(status.message());
  };
  text_of("");
  text_of("{}");
  text_of("[");
  EXPECT_NE(text_of(array({row("all_reduce/ring", 8, 1), "{}"})).find("row 1"), std::string::npos);
  text_of(array({row("all_reduce/ring", 8, -1)}));
  EXPECT_EQ(TunerTable::read("/does/not/exist").status().code(), Code::system_error);
}

TEST(TunerTable, differs_in_its_hash_where_the_text_differs) {
  EXPECT_NE(table_of({row("all_reduce/ring", 8, 1)}).hash(),
            table_of({row("all_reduce/ring", 8, 2)}).hash());
}

TEST(Candidates, predict_more_for_more_bytes_and_rounds) {
  const auto of = [](std::size_t bytes, std::string_view name) {
    for (const Candidate& c : candidates(query(Collective::all_reduce, 8, bytes), nullptr))
      if (c.algorithm->name == name) return c;
    return Candidate{};
  };
  EXPECT_LT(of(8, "one_shot").predicted_us, of(8, "ring").predicted_us);
  EXPECT_GT(of(1 << 20, "one_shot").predicted_us, of(1 << 20, "ring").predicted_us);
  EXPECT_GT(of(1 << 20, "ring").predicted_us, of(8, "ring").predicted_us);
  EXPECT_EQ(of(8, "ring").cost.rounds, 14U);
  EXPECT_GT(of(8, "two_level").cost.rounds, 0U) << "counted";
  for (const Candidate& c : candidates(query(Collective::all_reduce, 6, 8), nullptr))
    EXPECT_EQ(c.possible, c.algorithm->supports({.size = 6})) << c.algorithm->name;
}

// --- orders that are needed ---------------------------------------------------------------------

TEST(TunerOrder, takes_for_each_call_an_algorithm_that_has_it) {
  for (const Order need : {Order::tree, Order::tree_in_one_step})
    for (const Collective c :
         {Collective::all_reduce, Collective::reduce, Collective::scan, Collective::exscan,
          Collective::reduce_scatter, Collective::reduce_scatter_v})
      for (const int ranks : {2, 3, 4, 8, 9, 16, 17, 40, 200})
        for (const std::size_t bytes : {std::size_t{0}, 64 * kKiB, 1024 * kKiB})
          for (const bool network : {false, true}) {
            TunerQuery q = query(c, ranks, bytes, network);
            q.need = need;
            q.ranks_per_core = ranks / 2;
            for (int r = 0; r < ranks && network; ++r) q.shape.host_of.push_back(r / 2);
            const Result<Choice> choice = select_algorithm(q, {});
            ASSERT_TRUE(choice.ok()) << choice.status().message();
            EXPECT_TRUE(meets(*choice->algorithm, q.shape, need)) << id(*choice->algorithm);
          }
}

TEST(TunerOrder, keeps_the_usual_choice_inside_a_host) {
  for (const Collective c :
       {Collective::all_reduce, Collective::reduce, Collective::reduce_scatter})
    for (int ranks = 1; ranks <= 65; ++ranks)
      for (const int near_each_other : {1, 8, 65})
        for (const int ranks_per_core : {1, 2, 8})
          for (std::size_t bytes = 4; bytes <= 64 * 1024 * kKiB; bytes *= 2) {
            TunerQuery q = query(c, ranks, bytes);
            q.ranks_per_core = ranks_per_core;
            for (int r = 0; r < ranks; ++r) q.shape.host_of.push_back(r / near_each_other);
            const Result<Choice> usual = select_algorithm(q, {});
            q.need = Order::tree;
            const Result<Choice> ordered = select_algorithm(q, {});
            ASSERT_TRUE(usual.ok() && ordered.ok());
            ASSERT_EQ(usual->algorithm->name, ordered->algorithm->name)
                << name(c) << " of " << bytes << " bytes, " << ranks << " ranks, "
                << near_each_other << " near each other, " << ranks_per_core << " for each core";
            ASSERT_EQ(usual->tile_bytes, ordered->tile_bytes);
          }
}

TEST(TunerOrder, keeps_the_usual_choice_between_aligned_hosts_and_crosses_to_others_as_seldom) {
  TunerQuery q = query(Collective::all_reduce, 8, 1024 * kKiB, true);
  q.need = Order::tree;
  const auto chosen = [&](std::vector<int> hosts, std::size_t bytes) {
    q.shape.host_of = std::move(hosts);
    q.bytes = bytes;
    const Result<Choice> choice = select_algorithm(q, {});
    return std::string(choice.ok() ? choice->algorithm->name : choice.status().message());
  };
  const std::vector<int> aligned{0, 0, 0, 0, 1, 1, 1, 1}, uneven{0, 0, 0, 1, 1, 1, 1, 1};
  EXPECT_EQ(chosen(aligned, 1024 * kKiB), "two_level");
  EXPECT_EQ(chosen(aligned, kKiB), "single_leader");
  EXPECT_EQ(chosen(uneven, 1024 * kKiB), "tree_two_level");
  EXPECT_EQ(chosen(uneven, kKiB), "tree_doubling");
}

TEST(TunerOrder, counts_no_measurement_of_what_has_it_not) {
  const TunerTable table =
      table_of({row("all_reduce/ring", 1024, 1), row("all_reduce/two_shot", 1024, 9),
                row("all_reduce/one_shot", 1024, 5)});
  TunerQuery q = query(Collective::all_reduce, 4, 1024);
  EXPECT_EQ(with_table(q, table).algorithm, "ring");
  q.need = Order::tree;
  EXPECT_EQ(with_table(q, table).algorithm, "one_shot");
}

TEST(TunerOrder, in_one_step_is_not_had_by_the_tree_in_several) {
  Algorithm a = *find_algorithm(Collective::all_reduce, "recursive_doubling");
  a.order = the_tree;
  const Shape shape{Collective::all_reduce, 8};
  EXPECT_TRUE(meets(a, shape, Order::tree));
  EXPECT_FALSE(meets(a, shape, Order::tree_in_one_step));
  EXPECT_TRUE(meets(a, {Collective::all_reduce, 1}, Order::tree_in_one_step));
}

}  // namespace
}  // namespace anyccl
