// What the C++ interface adds to the C interface: groups, grids, experts, memory and configuration as
// values. What the calls do is tested where they are tested in C.

#include <algorithm>
#include <array>
#include <atomic>
#include <future>
#include <numeric>
#include <thread>

#include "support/ranks.hpp"
#include "support/sealed_file.hpp"

namespace anyccl::test {
namespace {

using namespace std::chrono_literals;
using Ints = std::vector<int>;

bool contains(const Status& status, std::string_view words) {
  return status.message().find(words) != std::string_view::npos;
}
/// Refused with this code, and these words.
#define EXPECT_REFUSED(status_, code_, words_)                     \
  do {                                                             \
    const Status refused_ = (status_);                             \
    EXPECT_EQ(refused_.code(), code_) << refused_.message();       \
    EXPECT_TRUE(contains(refused_, words_)) << refused_.message(); \
  } while (false)

// --- groups

template <typename Function>
void expect_group(Function function) {
  const Status done = group(function);
  EXPECT_TRUE(done.ok()) << done.message();
}

TEST(CppGroup, exchanges_by_blocking_calls) {
  run_ranks(3, [](Communicator& comm) {
    const int me = index(comm.rank()), n = comm.size();
    std::vector<Ints> out(3, Ints(50000, me)), in(3, Ints(50000, -1));
    expect_group([&] {
      for (int r = 0; r < n; ++r) {
        const auto i = static_cast<std::size_t>(r);
        EXPECT_OK(comm.send(out[i], Rank{r}).status());
        EXPECT_OK(comm.recv(in[i], Rank{r}).status());
      }
    });
    for (std::size_t r = 0; r < 3; ++r) EXPECT_EQ(in[r], Ints(50000, static_cast<int>(r)));
  });
}

TEST(CppGroup, runs_all_ranks_from_one_thread_and_a_group_in_it_is_part_of_it) {
  auto comms = Communicator::init_all(3);
  ASSERT_TRUE(comms.ok()) << comms.status().message();
  std::vector<Ints> x(3, Ints(1000, 2)), y(3, Ints(3000));
  expect_group([&] {
    for (std::size_t r = 0; r < 3; ++r)
      EXPECT_OK((*comms)[r].all_reduce(x[r], x[r], ReduceOp::sum).status());
    return group([&] {
      for (std::size_t r = 0; r < 3; ++r)
        EXPECT_OK((*comms)[r].broadcast(y[r], y[r], Rank{0}).status());
    });
  });
  for (const Ints& result : x) EXPECT_EQ(result, Ints(1000, 6));
}

TEST(CppGroup, gives_empty_works_of_which_nothing_can_be_asked) {
  run_ranks(2, [](Communicator& comm) {
    Ints x(10, 1);
    Work work;
    expect_group([&] {
      auto called = comm.all_reduce(x, x, ReduceOp::sum);
      EXPECT_OK(called.status());
      work = *std::move(called);
      EXPECT_EQ(x, Ints(10, 1)) << "nothing starts before the end";
    });
    EXPECT_EQ(x, Ints(10, 2));
    EXPECT_EQ(work.handle(), nullptr);
    EXPECT_REFUSED(work.wait(), Code::invalid_argument, "work is NULL");
  });
}

/// An error that is found before the library is called ends the group like any other.
TEST(CppGroup, starts_nothing_after_an_error_wherever_it_is_found) {
  run_ranks(2, [](Communicator& comm) {
    const Rank peer{1 - index(comm.rank())};
    Ints x(4, 7), y(3);
    const auto first = group([&] {
      EXPECT_OK(comm.send(x, peer).status());
      EXPECT_FALSE(comm.all_reduce(x, y, ReduceOp::sum).ok());
    });
    EXPECT_REFUSED(first, Code::invalid_argument, "4 and 3 elements");
    const auto second = group([&] {
      EXPECT_OK(comm.send(x, peer).status());
      EXPECT_FALSE(comm.send(x, peer, {}, -3).ok());
    });
    EXPECT_REFUSED(second, Code::invalid_argument, "tag -3");
    const auto inner = group([&] {
      EXPECT_OK(comm.send(x, peer).status());
      EXPECT_FALSE(group([&] { return comm.all_reduce(x, y, ReduceOp::sum).status(); }).ok());
    });
    EXPECT_REFUSED(inner, Code::invalid_argument, "4 and 3 elements");
    expect_group([&] {  // the first message that there is is this one
      x.assign(4, 8);
      EXPECT_OK(comm.send(x, peer).status());
      y.resize(4);
      EXPECT_OK(comm.recv(y, peer).status());
    });
    EXPECT_EQ(y, Ints(4, 8));
  });
}

TEST(CppGroup, ends_with_what_its_function_returns_or_throws) {
  run_ranks(2, [](Communicator& comm) {
    Ints x(4, 1);
    const auto own = group([&] {
      EXPECT_OK(comm.all_reduce(x, x, ReduceOp::sum).status());
      return Status(Code::unsupported, "the program says no");
    });
    EXPECT_REFUSED(own, Code::unsupported, "says no");
    EXPECT_THROW(static_cast<void>(group([&] {
                   EXPECT_OK(comm.all_reduce(x, x, ReduceOp::sum).status());
                   throw std::runtime_error("mine");
                 })),
                 std::runtime_error);
    EXPECT_EQ(x, Ints(4, 1)) << "nothing ran";
    ASSERT_OK(wait(comm.all_reduce(x, x, ReduceOp::sum)));
    EXPECT_EQ(x, Ints(4, 2)) << "and no group is open";
  });
}

TEST(CppGroup, creates_and_splits_several_ranks_in_one_thread) {
  const auto id = UniqueId::create();
  ASSERT_TRUE(id.ok());
  std::array<Communicator, 4> world, halves, stages;
  expect_group([&] {
    for (int r = 0; r < 4; ++r) EXPECT_OK(world[static_cast<std::size_t>(r)].join(*id, Rank{r}, 4));
  });
  const auto grids = [&] {
    std::vector<Grid> all;
    for (Communicator& comm : world) {
      auto grid = Grid::create(comm, {{"stage", 2}, {"tensor", 2}});
      EXPECT_OK(grid.status());
      all.push_back(*std::move(grid));
    }
    return all;
  }();
  expect_group([&] {
    for (std::size_t r = 0; r < 4; ++r) {
      EXPECT_OK(world[r].split_into(halves[r], static_cast<int>(r) % 2, 0));
      EXPECT_OK(grids[r].split_into(stages[r], world[r], {"stage"}));
    }
  });
  for (std::size_t r = 0; r < 4; ++r) {
    EXPECT_EQ(world[r].rank(), Rank{static_cast<int>(r)});
    EXPECT_EQ(halves[r].size(), 2);
    EXPECT_EQ(stages[r].rank(), Rank{static_cast<int>(r) / 2});
  }
  EXPECT_REFUSED(world[0].split_into(halves[0], 0, 0), Code::invalid_usage,
                 "split_into: the object is a communicator already");
}

TEST(CppGroup, refuses_what_gives_a_value_that_is_not_there_yet) {
  auto comms = Communicator::init_all(1);
  ASSERT_TRUE(comms.ok());
  Communicator& comm = (*comms)[0];
  EXPECT_REFUSED(group([&] { EXPECT_FALSE(comm.split(0, 0).ok()); }), Code::invalid_usage,
                 "split: there is no value before the group ends; split_into() can");
  EXPECT_REFUSED(group([&] { EXPECT_FALSE(Communicator::from_unique_id({}, Rank{0}, 1).ok()); }),
                 Code::invalid_usage, "join() can");
  EXPECT_REFUSED(group([&] { EXPECT_FALSE(comm.issue_all({}).ok()); }), Code::invalid_usage,
                 "issue_all");
}

TEST(CppGroup, is_simulated_and_runs_nothing_then) {
  run_ranks(2, [](Communicator& comm) {
    std::vector<float> x(std::size_t{1} << 20, 1);
    const auto time = [&](std::size_t count) {
      const auto us = simulate_group([&] {
        const std::span<float> part(x.data(), count);
        EXPECT_OK(comm.all_reduce(part, part, ReduceOp::sum).status());
      });
      EXPECT_OK(us.status());
      return us.ok() ? *us : 0;
    };
    EXPECT_GT(time(2), 0);
    EXPECT_GT(time(x.size()), 10 * time(2));
    EXPECT_EQ(x[0], 1);
    EXPECT_REFUSED(simulate_group([&] { return comm.send(x, Rank{9}).status(); }).status(),
                   Code::invalid_argument, "peer");
    const auto inside = group([&] { EXPECT_FALSE(simulate_group([] {}).ok()); });
    EXPECT_REFUSED(inside, Code::invalid_usage, "not inside a group");
    ASSERT_OK(wait(comm.barrier()));
  });
}

// --- grids, graphs and their exchanges

std::vector<Rank> ranks(const Ints& numbers) {
  std::vector<Rank> all;
  for (const int number : numbers) all.push_back(Rank{number});
  return all;
}

TEST(CppGrid, names_places_and_finds_neighbours) {
  run_ranks(6, [](Communicator& comm) {
    const auto grid = Grid::create(comm, {{"row", 2, true}, {"column"}});
    ASSERT_TRUE(grid.ok()) << grid.status().message();
    EXPECT_EQ(grid->dimensions()[1].size, 3) << "chosen";
    EXPECT_EQ(*grid->coords(Rank{4}), (Ints{1, 1}));
    EXPECT_EQ(*grid->rank({3, 2}), Rank{5}) << "rows are a circle";
    EXPECT_EQ(*grid->rank({0, 3}), kNoRank);
    if (comm.rank() != Rank{2}) return;
    const auto shift = grid->shift("column");
    ASSERT_TRUE(shift.ok());
    EXPECT_EQ(shift->source, Rank{1});
    EXPECT_EQ(shift->destination, kNoRank);
    EXPECT_EQ(grid->sources(), (std::vector<Rank>{Rank{5}, Rank{5}, Rank{1}, kNoRank}));
    EXPECT_EQ(grid->destinations(), grid->sources());
  });
}

/// The ranks of `world` that are in `part`.
Ints members(Communicator& world, Communicator& part) {
  const Ints me{index(world.rank())};
  Ints all(static_cast<std::size_t>(part.size()));
  EXPECT_OK(wait(part.all_gather(me, all)));
  return all;
}

/// 16 ranks as 2 stages x 2 replicas x 2 parts of the sequence x 2 parts of each layer.
TEST(CppGrid, gives_the_group_of_any_dimensions_by_one_call) {
  run_ranks(16, [](Communicator& world) {
    const auto grid =
        Grid::create(world, {{"pipeline", 2}, {"data", 2}, {"context", 2}, {"tensor", 2}});
    ASSERT_TRUE(grid.ok()) << grid.status().message();
    const auto group_of = [&](const std::vector<std::string>& kept) {
      auto part = grid->split(world, kept);
      EXPECT_OK(part.status());
      return part.ok() ? members(world, *part) : Ints{};
    };
    const int me = index(world.rank());
    const auto line = [&](int bit) { return Ints{me & ~bit, me | bit}; };
    EXPECT_EQ(group_of({"tensor"}), line(1));
    EXPECT_EQ(group_of({"context"}), line(2));
    EXPECT_EQ(group_of({"data"}), line(4));
    EXPECT_EQ(group_of({"pipeline"}), line(8));
    const int first = me & ~6;
    EXPECT_EQ(group_of({"context", "data"}), (Ints{first, first + 2, first + 4, first + 6}))
        << "gradients are added up over both";
    EXPECT_EQ(group_of({}), Ints{me});
  });
}

TEST(CppGrid, exchanges_halos) {
  run_ranks(4, [](Communicator& comm) {
    auto line = Grid::create(comm, {{"x", 0, true}});
    ASSERT_TRUE(line.ok());
    const int me = index(comm.rank()), before = (me + 3) % 4, after = (me + 1) % 4;
    const Ints edges{10 * me, 10 * me + 1};
    Ints halo(2), gathered(4), varied(3, -1);
    ASSERT_OK(line->neighbor_all_to_all(comm, edges, halo));
    EXPECT_EQ(halo, (Ints{10 * before + 1, 10 * after}));
    ASSERT_OK(line->neighbor_all_gather(comm, edges, gathered));
    EXPECT_EQ(gathered, (Ints{10 * before, 10 * before + 1, 10 * after, 10 * after + 1}));
    const std::array<std::size_t, 2> sent{1, 0}, sent_at{1, 0}, got{0, 1}, got_at{0, 2};
    ASSERT_OK(line->neighbor_all_to_all_v(comm, edges, {sent, sent_at}, varied, {got, got_at}));
    EXPECT_EQ(varied, (Ints{-1, -1, 10 * after + 1}));
  });
}

TEST(CppGrid, exchanges_in_a_stream_and_in_a_group) {
  run_ranks(3, [](Communicator& comm) {
    auto line = Grid::create(comm, {{"x", 3, true}});
    auto stream = Stream::create();
    ASSERT_TRUE(line.ok() && stream.ok());
    const int me = index(comm.rank());
    const Ints mine{me}, want{(me + 2) % 3, (me + 1) % 3};
    Ints streamed(2), grouped(2);
    ASSERT_OK(line->neighbor_all_gather(comm, mine, streamed, *stream));
    ASSERT_OK(stream->synchronize());
    expect_group([&] { return line->neighbor_all_gather(comm, mine, grouped); });
    EXPECT_EQ(streamed, want);
    EXPECT_EQ(grouped, want);
  });
}

TEST(CppGraph, exchanges_along_its_edges) {
  run_ranks(3, [](Communicator& comm) {
    const int me = index(comm.rank());  // 0>1, 0>2, 1>2, 2>0
    const std::array<Ints, 3> from{Ints{2}, Ints{0}, Ints{0, 1}}, to{Ints{1, 2}, Ints{2}, Ints{0}};
    const auto i = static_cast<std::size_t>(me);
    auto graph = Graph::create(comm, ranks(from[i]), ranks(to[i]));
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    EXPECT_EQ(graph->sources(), ranks(from[i]));
    EXPECT_EQ(graph->destinations(), ranks(to[i]));
    Ints out(to[i].size(), me), in(from[i].size(), -1);
    ASSERT_OK(graph->neighbor_all_to_all(comm, out, in));
    EXPECT_EQ(in, from[i]);
  });
}

TEST(CppTopology, names_what_is_wrong_with_its_arguments) {
  run_ranks(2, [](Communicator& comm) {
    EXPECT_REFUSED(Grid::create(comm, {{"x", 3}}).status(), Code::invalid_argument, "dims[0] is 3");
    EXPECT_REFUSED(Grid::create(comm, {}).status(), Code::invalid_argument, "ndims is 0");
    EXPECT_REFUSED(Grid::create(comm, {{"x", 2}, {"x", 1}}).status(), Code::invalid_argument,
                   "dimensions 0 and 1 are both 'x'");
    EXPECT_REFUSED(Graph::create(comm, {Rank{2}}, {}).status(), Code::invalid_argument,
                   "sources[0] is 2");
    auto grid = Grid::create(comm, {{"x", 2}, {"y", 1}});
    ASSERT_TRUE(grid.ok());
    EXPECT_REFUSED(grid->coords(Rank{2}).status(), Code::invalid_argument, "rank 2");
    EXPECT_REFUSED(grid->rank({0}).status(), Code::invalid_argument,
                   "1 coordinates in a grid of 2");
    EXPECT_REFUSED(grid->shift("z").status(), Code::invalid_argument,
                   "the grid has no dimension 'z', but x, y");
    EXPECT_REFUSED(grid->split(comm, {"x", "t"}).status(), Code::invalid_argument, "'t', but x, y");
    Ints x(4), y(4), three(3);
    std::vector<float> f(4);
    const std::array<std::size_t, 4> four{};
    const std::array<std::size_t, 3> few{};
    EXPECT_REFUSED(grid->neighbor_all_gather(comm, x, y), Code::invalid_argument,
                   "out has 4 elements, which are not 4 blocks of 4");
    EXPECT_REFUSED(grid->neighbor_all_to_all(comm, three, y), Code::invalid_argument,
                   "in has 3 elements, which are not 4 blocks");
    EXPECT_REFUSED(grid->neighbor_all_to_all(comm, x, f), Code::invalid_argument,
                   "different types");
    EXPECT_REFUSED(grid->neighbor_all_to_all_v(comm, x, {four, few}, y, {four, four}),
                   Code::invalid_argument, "sent has 3 entries instead of one for each of 4");
    ASSERT_OK(wait(comm.barrier()));
    Grid none;
    EXPECT_TRUE(none.sources().empty());
    EXPECT_REFUSED(none.coords(Rank{0}).status(), Code::invalid_argument, "topology is NULL");
  });
}

TEST(CppTopology, whose_peer_is_gone_gives_its_error) {
  run_ranks(2, [](Communicator& comm) {
    auto line = Grid::create(comm, {{"x", 2}});
    ASSERT_TRUE(line.ok());
    if (comm.rank() == Rank{1}) return void(comm.abort());
    Ints x(2), y(4);
    EXPECT_EQ(line->neighbor_all_gather(comm, x, y).code(), Code::aborted);
  });
}

// --- experts

TEST(CppExperts, get_the_tokens_and_give_back_weighted_sums) {
  run_ranks(2, [](Communicator& comm) {
    const int me = index(comm.rank());
    const Ints experts{0, 3, 2, -1};  // two choices for each of two tokens
    const std::vector<float> tokens{1, 2, 3, 4}, weights{0.5F, 2, 1, 9};  // of width 2
    RoutingConfig config;
    config.experts = 4;
    config.choices = 2;
    auto routing = Routing::create(comm, experts, config);
    ASSERT_TRUE(routing.ok()) << routing.status().message();
    EXPECT_EQ(routing->tokens(), 2U);
    EXPECT_EQ(routing->rows(), me == 0 ? 2U : 4U);
    EXPECT_EQ(routing->tokens_of_experts(),
              me == 0 ? (std::vector<std::size_t>{2, 0}) : (std::vector<std::size_t>{2, 2}));
    EXPECT_EQ(routing->dropped(), 0U);
    std::vector<float> rows(routing->rows() * 2), back(4, -1);
    ASSERT_OK(routing->dispatch(comm, tokens, rows));
    EXPECT_EQ(rows, me == 0 ? (std::vector<float>{1, 2, 1, 2})
                            : (std::vector<float>{3, 4, 3, 4, 1, 2, 1, 2}));
    ASSERT_OK(routing->combine(comm, rows, weights, back));
    EXPECT_EQ(back, (std::vector<float>{2.5F, 5, 3, 4}));
    ASSERT_OK(routing->combine(comm, rows, {}, back));
    EXPECT_EQ(back, (std::vector<float>{2, 4, 3, 4}));
  });
}

/// Expert parallelism within data and tensor parallelism: of each expert group, with tokens and experts
/// of its own.
TEST(CppExperts, are_shared_by_the_group_of_a_grid) {
  run_ranks(8, [](Communicator& world) {
    const auto grid = Grid::create(world, {{"data", 2}, {"expert", 2}, {"tensor", 2}});
    ASSERT_TRUE(grid.ok());
    auto expert = grid->split(world, {"expert"}), data = grid->split(world, {"data"});
    ASSERT_TRUE(expert.ok() && data.ok());
    const int me = index(world.rank());
    const Ints experts{me / 2 % 4, 3, 0};  // of four
    const std::vector<double> tokens{1.0 + me, 2, 3};
    RoutingConfig config;
    config.experts = 4;
    auto routing = Routing::create(*expert, experts, config);
    ASSERT_TRUE(routing.ok()) << routing.status().message();
    std::vector<double> rows(routing->rows()), back(3);
    ASSERT_OK(routing->dispatch(*expert, tokens, rows));
    std::size_t row = 0;
    const auto counts = routing->tokens_of_experts();
    for (std::size_t e = 0; e < counts.size(); ++e)
      for (std::size_t i = 0; i < counts[e]; ++i)  // expert e multiplies by e + 1
        rows[row++] *= static_cast<double>(2 * static_cast<std::size_t>(expert->rank()) + e + 1);
    ASSERT_OK(routing->combine(*expert, rows, {}, back));
    EXPECT_EQ(back, (std::vector<double>{(1.0 + me) * (experts[0] + 1), 8, 3}));
    std::vector<std::int64_t> seen(counts.begin(), counts.end());
    ASSERT_OK(wait(data->all_reduce(seen, seen, ReduceOp::sum)));
    EXPECT_EQ(seen, expert->rank() == Rank{0} ? (std::vector<std::int64_t>{5, 1})
                                              : (std::vector<std::int64_t>{1, 5}));
  });
}

TEST(CppExperts, drop_what_is_beyond_their_capacity_and_have_padded_rows) {
  run_ranks(2, [](Communicator& comm) {
    const Ints experts{0, 0, 0};
    RoutingConfig config;
    config.experts = 2;
    config.capacity = 2;
    config.padded = true;
    const auto routing = Routing::create(comm, experts, config);
    ASSERT_TRUE(routing.ok());
    EXPECT_EQ(routing->rows(), 4U);
    EXPECT_EQ(routing->dropped(), 1U);
  });
}

TEST(CppExperts, name_what_is_wrong_with_their_arguments) {
  auto comms = Communicator::init_all(1);
  ASSERT_TRUE(comms.ok());
  Communicator& comm = (*comms)[0];
  RoutingConfig config;
  config.experts = 2;
  EXPECT_REFUSED(Routing::create(comm, Ints{0, 2}, config).status(), Code::invalid_argument,
                 "expert 2 of 2");
  config.choices = 2;
  EXPECT_REFUSED(Routing::create(comm, Ints{0, 1, 0}, config).status(), Code::invalid_argument,
                 "3 choices are not 2 per token");
  auto routing = Routing::create(comm, Ints{0, 1}, config);
  ASSERT_TRUE(routing.ok());
  std::vector<float> token(3), rows(6), few(5), weights(1);
  EXPECT_REFUSED(routing->dispatch(comm, token, few), Code::invalid_argument,
                 "3 elements of 1 tokens and 5 of 2 rows");
  EXPECT_REFUSED(routing->combine(comm, rows, weights, token), Code::invalid_argument,
                 "1 weights for 2 choices");
  EXPECT_REFUSED(group([&] { return routing->dispatch(comm, token, rows); }), Code::invalid_usage,
                 "cannot be in a group");
  ASSERT_OK(routing->dispatch(comm, token, rows));
}

// --- operators

TEST(CppOperators, find_the_largest_and_the_least_value_and_where_it_is) {
  run_ranks(3, [](Communicator& comm) {
    const int me = index(comm.rank());
    const auto check = [&]<typename T>(T value) {
      const auto largest = comm.create_max_loc<T>(), least = comm.create_min_loc<T>();
      ASSERT_TRUE(largest.ok() && least.ok());
      const std::vector<ValueIndex<T>> x{{me == 1 ? value : T{0}, me}};
      std::vector<ValueIndex<T>> max(1), min(1);
      ASSERT_OK(wait(comm.all_reduce(x, max, *largest)));
      ASSERT_OK(wait(comm.all_reduce(x, min, *least)));
      EXPECT_EQ(max[0], (ValueIndex<T>{value, 1}));
      EXPECT_EQ(min[0], (ValueIndex<T>{0, 0})) << "the first of two";
      EXPECT_OK(comm.destroy_operator(*largest));
      EXPECT_OK(comm.destroy_operator(*least));
    };
    check(2.5F);
    check(2.5);
    check(std::int32_t{7});
    check(std::int64_t{7});
  });
}

TEST(CppOperators, reduce_locally) {
  const std::vector<float> x{1, 5};
  std::vector<float> y{2, 3}, three(3);
  ASSERT_OK(reduce_local(x, y, ReduceOp::max));
  EXPECT_EQ(y, (std::vector<float>{2, 5}));
  EXPECT_REFUSED(reduce_local(x, three, ReduceOp::sum), Code::invalid_argument, "2 and 3 elements");
  EXPECT_REFUSED(reduce_local(x, y, ReduceOp::avg), Code::unsupported, "avg");
  auto comms = Communicator::init_all(1);
  ASSERT_TRUE(comms.ok());
  Communicator& comm = (*comms)[0];
  const auto largest = comm.create_max_loc<float>();
  ASSERT_TRUE(largest.ok());
  const std::vector<ValueIndex<float>> a{{1, 4}};
  std::vector<ValueIndex<float>> b{{1, 5}};
  ASSERT_OK(comm.reduce_local(a, b, *largest));
  EXPECT_EQ(b[0], a[0]);
}

TEST(CppCalls, all_to_all_w_has_a_type_for_each_pair) {
  run_ranks(2, [](Communicator& comm) {
    const auto me = static_cast<std::size_t>(comm.rank());
    // To rank 0 go two bytes, to rank 1 one double.
    const std::array<std::size_t, 2> sent{2, 1}, sent_at{0, 8}, got_at{0, 8};
    const std::array<std::size_t, 2> got =
        me == 0 ? std::array<std::size_t, 2>{2, 2} : std::array<std::size_t, 2>{1, 1};
    const std::array<DType, 2> sent_as{DType::i8, DType::f64};
    const std::array<DType, 2> got_as{sent_as[me], sent_as[me]};
    std::vector<std::byte> x(16, static_cast<std::byte>(me + 1)), y(16), want(16);
    ASSERT_OK(comm.all_to_all_w(x, {sent, sent_at, sent_as}, y, {got, got_at, got_as}));
    for (std::size_t from : {0U, 1U})
      std::fill_n(want.begin() + static_cast<std::ptrdiff_t>(8 * from), me == 0 ? 2 : 8,
                  static_cast<std::byte>(from + 1));
    EXPECT_EQ(y, want);
    const std::array<DType, 1> one{};
    EXPECT_REFUSED(comm.all_to_all_w(x, {sent, sent_at, one}, y, {got, got_at, got_as}),
                   Code::invalid_argument, "1 entries instead of one for each of 2 ranks");
    ASSERT_OK(wait(comm.barrier()));
  });
}

TEST(CppCalls, issue_all_gives_a_work_for_each_call) {
  run_ranks(2, [](Communicator& comm) {
    Ints x(1, 1), y(1, 2);
    anycclCall_t call{};
    call.size = sizeof call;
    call.collective = anycclCollAllReduce;
    call.count = 1;
    call.datatype = anycclInt32;
    std::array<anycclCall_t, 2> calls{call, call};
    calls[0].sendbuff = calls[0].recvbuff = x.data();
    calls[1].sendbuff = calls[1].recvbuff = y.data();
    auto works = comm.issue_all(calls);
    ASSERT_TRUE(works.ok()) << works.status().message();
    for (Work& work : *works) ASSERT_OK(work.wait());
    EXPECT_EQ(x[0] + y[0], 6);
  });
}

// --- works and time limits

TEST(CppWork, notifies_once) {
  run_ranks(2, [](Communicator& comm) {
    std::promise<int> told;
    std::future<int> hears = told.get_future();
    auto work = comm.barrier();
    ASSERT_TRUE(work.ok());
    ASSERT_OK(work->notify([promise = std::move(told)]() mutable { promise.set_value(7); }));
    EXPECT_EQ(hears.get(), 7);
    ASSERT_OK(work->wait());
    EXPECT_REFUSED(Work().notify([] {}), Code::invalid_argument, "work is NULL");
  });
}

TEST(CppWork, of_a_communicator_with_a_time_limit_fails_when_it_is_over) {
  std::atomic<bool> failed = false;
  run_ranks(2, [&](Communicator& comm) {
    comm.set_timeout(60s);
    ASSERT_OK(wait(comm.barrier()));
    if (comm.rank() == Rank{1}) return failed.wait(false);  // and never calls the second one
    comm.set_timeout(20ms);
    EXPECT_EQ(wait(comm.barrier()).code(), Code::timeout);
    failed = true;
    failed.notify_all();
  });
}

TEST(CppWork, has_a_time_limit_of_its_own) {
  std::atomic<bool> failed = false;
  run_ranks(2, [&](Communicator& comm) {
    if (comm.rank() == Rank{1}) return failed.wait(false);
    auto work = comm.barrier();
    ASSERT_TRUE(work.ok());
    EXPECT_EQ(work->wait_for(1ms).code(), Code::in_progress);
    EXPECT_OK(work->limit(10ms));
    EXPECT_EQ(work->wait().code(), Code::timeout);
    failed = true;
    failed.notify_all();
  });
}

// --- configuration

TEST(CppCommunicator, is_created_and_split_without_waiting) {
  const auto id = UniqueId::create();
  ASSERT_TRUE(id.ok());
  CommunicatorConfig config;
  config.name = "in the background";
  config.blocking = false;
  const auto until_ready = [](Communicator& comm) {
    for (auto ready = comm.ready(); ready.ok() && !*ready; ready = comm.ready())
      std::this_thread::yield();
    EXPECT_OK(comm.ready().status());
  };
  std::vector<std::thread> threads;
  for (const int rank : {0, 1})
    threads.emplace_back([&, rank] {
      auto comm = Communicator::from_unique_id(*id, Rank{rank}, 2, config);
      ASSERT_TRUE(comm.ok()) << comm.status().message();
      until_ready(*comm);
      auto part = comm->split(0, -rank, config);
      ASSERT_TRUE(part.ok()) << part.status().message();
      until_ready(*part);
      EXPECT_EQ(part->rank(), Rank{1 - rank});
      ASSERT_OK(wait(part->barrier()));
      EXPECT_FALSE(part->last_plan().empty());
      ASSERT_OK(part->finalize());
      until_ready(*part);
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(CppCommunicator, may_be_moved_and_keeps_its_time_limit) {
  run_ranks(2, [](Communicator& comm) {
    auto part = comm.split(0, 0);
    ASSERT_TRUE(part.ok());
    part->set_timeout(20ms);
    Communicator moved = *std::move(part);
    EXPECT_EQ(part->handle(), nullptr);
    if (comm.rank() == Rank{0}) {
      EXPECT_EQ(wait(moved.barrier()).code(), Code::timeout);
    }
    ASSERT_OK(wait(comm.barrier()));  // its peer is there until then
  });
}

// --- memory

TEST(CppMemory, is_read_by_peers_and_serves_containers) {
  run_ranks(2, [](Communicator& comm) {
    auto buffer = Buffer<float>::create(100000);
    ASSERT_TRUE(buffer.ok()) << buffer.status().message();
    std::fill(buffer->begin(), buffer->end(), 1.0F);
    std::vector<float, Allocator<float>> x(buffer->size());
    ASSERT_OK(wait(comm.all_reduce(view(*buffer), view(x), ReduceOp::sum)));
    ASSERT_OK(wait(comm.all_reduce(x, *buffer, ReduceOp::max)));
    EXPECT_EQ((*buffer)[99999], 2.0F);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(x.data()) % 64, 0U);
    const Buffer<float> moved = *std::move(buffer);
    EXPECT_EQ(moved.size(), 100000U);
    EXPECT_EQ(buffer->size(), 0U);
  });
}

TEST(CppMemory, of_the_program_is_registered_as_long_as_its_object_lives) {
  const SealedFile file(8192);
  const std::span<std::byte> all(file.at, file.bytes);
  {
    auto first = MemoryRegistration::create(all, file.fd);
    ASSERT_TRUE(first.ok()) << first.status().message();
    const MemoryRegistration moved = *std::move(first);
    EXPECT_REFUSED(MemoryRegistration::create(all.subspan(4096), file.fd, 4096).status(),
                   Code::invalid_argument, "registered already");
  }
  EXPECT_OK(MemoryRegistration::create(all, file.fd).status());
  EXPECT_REFUSED(MemoryRegistration::create(all, file.fd, 4096).status(), Code::invalid_argument,
                 "has 8192 bytes instead of 12288");
}

TEST(CppMemory, that_is_not_there_is_an_error) {
  constexpr std::size_t kAll = ~std::size_t{0};
  EXPECT_REFUSED(Buffer<double>::create(kAll).status(), Code::invalid_argument, "overflows");
  EXPECT_FALSE(Buffer<char>::create(kAll / 2).ok());
  EXPECT_THROW(static_cast<void>(Allocator<double>().allocate(kAll)), std::bad_alloc);
}

}  // namespace
}  // namespace anyccl::test
