// Grids, graphs and their exchanges in the C++ interface. What they do is tested where it is tested
// in C.

#include <array>

#include "multirank/cpp/expect.hpp"

namespace anyccl::test {
namespace {

using Ints = std::vector<int>;

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

}  // namespace
}  // namespace anyccl::test
