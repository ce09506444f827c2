// Grids and graphs of ranks, their groups, and exchanges between neighbours.

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>

#include "support/effort.hpp"
#include "support/ranks.hpp"

namespace anyccl::test {
namespace {

using Ints = std::vector<int>;

struct Destroy {
  void operator()(anycclTopology_t topology) const {
    EXPECT_EQ(anycclTopologyDestroy(topology), anycclSuccess);
  }
};
using Topology = std::unique_ptr<anycclTopology, Destroy>;

Topology grid(Communicator& comm, const Ints& dims, const Ints& periodic = {}) {
  anycclTopology_t made = nullptr;
  EXPECT_EQ(anycclTopologyCreateGrid(&made, static_cast<int>(dims.size()), dims.data(),
                                     periodic.empty() ? nullptr : periodic.data(), comm.handle()),
            anycclSuccess)
      << anycclGetLastError(comm.handle());
  return Topology(made);
}

Ints dims_of(const Topology& topology) {
  int count = 0;
  std::array<int, 16> dims{};
  EXPECT_EQ(anycclTopologyDims(topology.get(), &count, dims.data()), anycclSuccess);
  return Ints(dims.begin(), dims.begin() + count);
}

Ints coords_of(const Topology& topology, int rank) {
  Ints coords(dims_of(topology).size());
  EXPECT_EQ(anycclTopologyCoords(topology.get(), rank, coords.data()), anycclSuccess);
  return coords;
}

int rank_at(const Topology& topology, const Ints& coords) {
  int rank = -9;
  EXPECT_EQ(anycclTopologyRank(topology.get(), coords.data(), &rank), anycclSuccess);
  return rank;
}

Ints neighbors(const Topology& topology) {
  int sources = 0, destinations = 0;
  const int *from = nullptr, *to = nullptr;
  EXPECT_EQ(anycclTopologyNeighbors(topology.get(), &sources, &from, &destinations, &to),
            anycclSuccess);
  EXPECT_TRUE(std::equal(from, from + sources, to, to + destinations));
  return Ints(to, to + destinations);
}

TEST(Grid, places_ranks_in_row_major_order) {
  run_ranks(12, [](Communicator& comm) {
    const Topology g = grid(comm, {2, 3, 2}, {0, 1, 0});
    EXPECT_EQ(coords_of(g, 0), (Ints{0, 0, 0}));
    EXPECT_EQ(coords_of(g, 1), (Ints{0, 0, 1}));
    EXPECT_EQ(coords_of(g, 9), (Ints{1, 1, 1}));
    for (int r = 0; r < 12; ++r) EXPECT_EQ(rank_at(g, coords_of(g, r)), r);
    EXPECT_EQ(rank_at(g, {1, -1, 0}), rank_at(g, {1, 2, 0})) << "a circle";
    EXPECT_EQ(rank_at(g, {1, 301, 0}), rank_at(g, {1, 1, 0}));
    EXPECT_EQ(rank_at(g, {2, 0, 0}), ANYCCL_NO_RANK) << "beyond the edge";
    EXPECT_EQ(rank_at(g, {0, 0, -1}), ANYCCL_NO_RANK);
  });
}

TEST(Grid, chooses_dimensions_that_are_0) {
  const auto chosen = [](int ranks, const Ints& dims) {
    Ints found;
    run_ranks(ranks, [&](Communicator& comm) {
      const Topology g = grid(comm, dims);
      if (comm.rank() == Rank{0}) found = dims_of(g);
    });
    return found;
  };
  EXPECT_EQ(chosen(12, {0, 0}), (Ints{4, 3}));
  EXPECT_EQ(chosen(12, {0, 2, 0}), (Ints{3, 2, 2}));
  EXPECT_EQ(chosen(7, {0, 0}), (Ints{7, 1}));
  EXPECT_EQ(chosen(16, {0, 0, 0}), (Ints{4, 2, 2}));
  EXPECT_EQ(chosen(1, {0, 0}), (Ints{1, 1}));
}

TEST(Grid, shifts_along_a_dimension) {
  run_ranks(6, [](Communicator& comm) {
    const Topology g = grid(comm, {2, 3}, {1, 0});
    const Ints at = coords_of(g, index(comm.rank()));
    int source = 0, destination = 0;
    ASSERT_EQ(anycclTopologyShift(g.get(), 1, 2, &source, &destination), anycclSuccess);
    EXPECT_EQ(source, at[1] == 2 ? rank_at(g, {at[0], 0}) : ANYCCL_NO_RANK);
    EXPECT_EQ(destination, at[1] == 0 ? rank_at(g, {at[0], 2}) : ANYCCL_NO_RANK);
    ASSERT_EQ(anycclTopologyShift(g.get(), 0, -3, &source, &destination), anycclSuccess);
    EXPECT_EQ(source, rank_at(g, {1 - at[0], at[1]}));
    EXPECT_EQ(destination, source);
    ASSERT_EQ(anycclTopologyShift(g.get(), 1, 0x7fffffff, &source, &destination), anycclSuccess);
    EXPECT_EQ(source, ANYCCL_NO_RANK);
  });
}

Ints members(Communicator& comm, anycclComm_t part) {
  int size = 0;
  EXPECT_EQ(anycclCommCount(part, &size), anycclSuccess);
  Ints ranks(static_cast<std::size_t>(size));
  const int me = index(comm.rank());
  EXPECT_EQ(anycclAllGather(&me, ranks.data(), 1, anycclInt32, part, nullptr), anycclSuccess);
  return ranks;
}

/// 16 ranks: 4 stages of a pipeline, each with 2 replicas of 2 ranks that share a layer.
TEST(Grid, gives_the_groups_of_pipeline_data_and_tensor_parallelism) {
  run_ranks(16, [](Communicator& comm) {
    const Topology g = grid(comm, {4, 2, 2});
    const auto group = [&](const Ints& keep) {
      anycclComm_t part = nullptr;
      EXPECT_EQ(anycclTopologySplit(g.get(), keep.data(), comm.handle(), &part, nullptr),
                anycclSuccess);
      const Ints found = members(comm, part);
      EXPECT_EQ(anycclCommDestroy(part), anycclSuccess);
      return found;
    };
    const int me = index(comm.rank()), stage = me / 4;
    EXPECT_EQ(group({0, 0, 1}), (Ints{me / 2 * 2, me / 2 * 2 + 1})) << "tensor";
    EXPECT_EQ(group({0, 1, 0}), (Ints{stage * 4 + me % 2, stage * 4 + me % 2 + 2})) << "data";
    EXPECT_EQ(group({1, 0, 0}), (Ints{me % 4, me % 4 + 4, me % 4 + 8, me % 4 + 12})) << "pipeline";
    Ints both(4);
    std::iota(both.begin(), both.end(), stage * 4);
    EXPECT_EQ(group({0, 1, 1}), both) << "tensor and data";
    EXPECT_EQ(group({0, 0, 0}), Ints{me});
  });
}

class Exchange : public testing::TestWithParam<const char*> {
 protected:
  void on_ranks(int ranks, const Body& body) const {
    const Environment env(Environment::Variables{{"ANYCCL_TRANSPORT", GetParam()}});
    run_ranks(ranks, body);
  }
};
INSTANTIATE_TEST_SUITE_P(Over, Exchange, testing::Values("loopback", "tcp"),
                         [](const auto& test) { return std::string(test.param); });

/// What `from` sends as its block `block`.
float sent_by(int from, std::size_t block, std::size_t i) {
  return static_cast<float>(from * 1000000 + static_cast<int>(block) * 10000 +
                            static_cast<int>(i % 9999));
}

/// What comes from the rank before is what that one sent to the rank after it, and the other way
/// round; also where circles are so short that a rank is several of its own neighbours.
TEST_P(Exchange, a_halo_comes_from_the_side_it_was_sent_to) {
  struct Case {
    int ranks;
    Ints dims, periodic;
  };
  for (const Case& c : {Case{6, {2, 3}, {1, 1}}, Case{6, {2, 3}, {0, 0}}, Case{4, {1, 4}, {1, 0}},
                        Case{2, {2}, {1}}, Case{1, {1, 1}, {1, 1}}, Case{8, {2, 2, 2}, {1, 0, 1}}})
    on_ranks(c.ranks, [&](Communicator& comm) {
      const Topology g = grid(comm, c.dims, c.periodic);
      const Ints near = neighbors(g);
      const int me = index(comm.rank());
      ASSERT_EQ(near.size(), 2 * c.dims.size());
      for (const std::size_t count : {1U, kSanitized ? 20000U : 70000U}) {
        std::vector<float> x(near.size() * count), y(x.size(), -1), gathered(x.size(), -1);
        for (std::size_t i = 0; i < x.size(); ++i) x[i] = sent_by(me, i / count, i % count);
        ASSERT_EQ(anycclNeighborAllToAll(x.data(), y.data(), count, anycclFloat32, g.get(),
                                         comm.handle(), nullptr),
                  anycclSuccess)
            << anycclGetLastError(comm.handle());
        ASSERT_EQ(anycclNeighborAllGather(x.data(), gathered.data(), count, anycclFloat32, g.get(),
                                          comm.handle(), nullptr),
                  anycclSuccess);
        for (std::size_t i = 0; i < y.size(); ++i) {
          const std::size_t k = i / count;
          const bool there = near[k] != ANYCCL_NO_RANK;
          ASSERT_EQ(y[i], there ? sent_by(near[k], k ^ 1U, i % count) : -1) << "block " << k;
          ASSERT_EQ(gathered[i], there ? sent_by(near[k], 0, i % count) : -1) << "block " << k;
        }
      }
    });
}

TEST_P(Exchange, along_a_graph_matches_repeated_neighbours_in_order) {
  on_ranks(3, [](Communicator& comm) {
    const int me = index(comm.rank()), next = (me + 1) % 3, prev = (me + 2) % 3;
    const Ints to{next, next, me}, from{me, prev, prev};
    anycclTopology_t made = nullptr;
    ASSERT_EQ(anycclTopologyCreateGraph(&made, 3, from.data(), 3, to.data(), comm.handle()),
              anycclSuccess);
    const Topology graph(made);
    EXPECT_TRUE(dims_of(graph).empty());
    const Ints x{100 * me, 100 * me + 1, 100 * me + 2};
    Ints y(3, -1);
    ASSERT_EQ(anycclNeighborAllToAll(x.data(), y.data(), 1, anycclInt32, graph.get(), comm.handle(),
                                     nullptr),
              anycclSuccess);
    EXPECT_EQ(y, (Ints{100 * me + 2, 100 * prev, 100 * prev + 1}));
  });
}

TEST_P(Exchange, of_blocks_that_differ_and_of_some_that_are_empty) {
  on_ranks(4, [](Communicator& comm) {
    const Topology g = grid(comm, {4}, {1});
    const int me = index(comm.rank());
    const auto n = [](int rank) { return static_cast<std::size_t>(rank) * 1000; };  // to each side
    const std::array<std::size_t, 2> sent{n(me), n(me)}, sent_at{n(me) + 5, 0};
    const std::array<std::size_t, 2> received{n((me + 3) % 4), n((me + 1) % 4)},
        received_at{0, 4000};
    std::vector<float> x(2 * n(me) + 5), y(8000, -1), want = y;
    std::iota(x.begin(), x.end(), 1000.0F * static_cast<float>(me));
    ASSERT_EQ(
        anycclNeighborAllToAllv(x.data(), sent.data(), sent_at.data(), y.data(), received.data(),
                                received_at.data(), anycclFloat32, g.get(), comm.handle(), nullptr),
        anycclSuccess)
        << anycclGetLastError(comm.handle());
    const auto fill = [&](int from, std::size_t first, std::size_t at) {
      for (std::size_t i = 0; i < n(from); ++i)
        want[at + i] = 1000.0F * static_cast<float>(from) + static_cast<float>(first + i);
    };
    fill((me + 3) % 4, 0, 0);                       // its block 1 is at 0,
    fill((me + 1) % 4, n((me + 1) % 4) + 5, 4000);  // its block 0 behind that
    EXPECT_EQ(y, want);
  });
}

TEST_P(Exchange, has_blocks_of_different_types) {
  on_ranks(3, [](Communicator& comm) {
    const Topology g = grid(comm, {3}, {1});
    const int me = index(comm.rank()), before = (me + 2) % 3, after = (me + 1) % 3;
    struct {
      double to_before[2];
      std::int32_t to_after[3];
    } x{{me + 0.5, me + 1.5}, {me, me + 10, me + 20}};
    struct {
      std::int32_t from_before[3];
      double from_after[2];
    } y{};
    const std::array<std::size_t, 2> sent{2, 3}, sent_at{0, sizeof x.to_before}, received{3, 2},
        received_at{0, offsetof(decltype(y), from_after)};
    const std::array<anycclDataType_t, 2> sent_types{anycclFloat64, anycclInt32},
        received_types{anycclInt32, anycclFloat64};
    ASSERT_EQ(anycclNeighborAllToAllw(&x, sent.data(), sent_at.data(), sent_types.data(), &y,
                                      received.data(), received_at.data(), received_types.data(),
                                      g.get(), comm.handle(), nullptr),
              anycclSuccess)
        << anycclGetLastError(comm.handle());
    for (int i = 0; i < 3; ++i) EXPECT_EQ(y.from_before[i], before + 10 * i);
    for (int i = 0; i < 2; ++i) EXPECT_EQ(y.from_after[i], after + i + 0.5);
    EXPECT_EQ(anycclNeighborAllToAllw(&x, sent.data(), sent_at.data(), nullptr, &y, received.data(),
                                      received_at.data(), received_types.data(), g.get(),
                                      comm.handle(), nullptr),
              anycclInvalidArgument);
    EXPECT_NE(std::string(anycclGetLastError(comm.handle())).find("sendtypes"), std::string::npos);
  });
}

TEST_P(Exchange, does_not_take_messages_of_the_program) {
  on_ranks(2, [](Communicator& comm) {
    const Topology g = grid(comm, {2}, {1});
    const int me = index(comm.rank()), peer = 1 - me;
    float mine = static_cast<float>(me), theirs = -1;
    const auto sent = comm.send(view(std::span(&mine, 1)), Rank{peer});
    ASSERT_OK(sent.status());
    const std::array<float, 2> x{10, 20};
    std::array<float, 2> y{};
    ASSERT_EQ(anycclNeighborAllToAll(x.data(), y.data(), 1, anycclFloat32, g.get(), comm.handle(),
                                     nullptr),
              anycclSuccess);
    ASSERT_OK(wait(comm.recv(view(std::span(&theirs, 1)), Rank{peer})));
    EXPECT_EQ(theirs, static_cast<float>(peer));
    EXPECT_EQ(y, (std::array<float, 2>{20, 10}));
  });
}

TEST_P(Exchange, in_a_stream_and_in_a_group) {
  on_ranks(3, [](Communicator& comm) {
    const Topology g = grid(comm, {3}, {1});
    const float me = static_cast<float>(index(comm.rank()));
    std::array<float, 2> y{}, z{};
    float sum = 0;
    const auto gather = [&](std::array<float, 2>& out, anycclStream_t stream) {
      return anycclNeighborAllGather(&me, out.data(), 1, anycclFloat32, g.get(), comm.handle(),
                                     stream);
    };
    anycclStream_t stream = nullptr;
    ASSERT_EQ(anycclStreamCreate(&stream), anycclSuccess);
    ASSERT_EQ(gather(y, stream), anycclSuccess);
    ASSERT_EQ(anycclStreamSynchronize(stream), anycclSuccess);
    ASSERT_EQ(anycclStreamDestroy(stream), anycclSuccess);
    ASSERT_EQ(anycclGroupStart(), anycclSuccess);
    ASSERT_EQ(gather(z, nullptr), anycclSuccess);
    ASSERT_EQ(anycclAllReduce(&me, &sum, 1, anycclFloat32, anycclSum, comm.handle(), nullptr),
              anycclSuccess);
    ASSERT_EQ(anycclGroupEnd(), anycclSuccess);
    const int r = index(comm.rank());
    const std::array<float, 2> want{static_cast<float>((r + 2) % 3),
                                    static_cast<float>((r + 1) % 3)};
    EXPECT_EQ(y, want);
    EXPECT_EQ(z, want);
    EXPECT_EQ(sum, 3);
  });
}

/// Rank i sends j + 1 elements to rank j: bytes to even ranks, doubles to odd ones; rank 0 sends
/// nothing to rank 2.
TEST_P(Exchange, all_to_all_w_has_a_type_for_each_pair) {
  on_ranks(3, [](Communicator& comm) {
    const auto me = static_cast<std::size_t>(comm.rank());
    const auto type = [](std::size_t to) { return to % 2 == 0 ? anycclInt8 : anycclFloat64; };
    const auto count = [](std::size_t from, std::size_t to) {
      return from == 0 && to == 2 ? 0 : to + 1;
    };
    std::array<std::size_t, 3> sent{}, sent_at{0, 8, 40}, received{}, received_at{32, 64, 0};
    std::array<anycclDataType_t, 3> sent_as{}, received_as{};
    std::vector<char> x(64), y(96, 0);
    for (std::size_t r = 0; r < 3; ++r) {
      sent[r] = count(me, r), received[r] = count(r, me);
      sent_as[r] = type(r), received_as[r] = type(me);
    }
    std::fill(x.begin(), x.end(), static_cast<char>('a' + me));
    auto wrong = sent_as;
    wrong[1] = anycclNumTypes;
    EXPECT_EQ(anycclAllToAllw(x.data(), sent.data(), sent_at.data(), wrong.data(), y.data(),
                              received.data(), received_at.data(), received_as.data(),
                              comm.handle(), nullptr),
              anycclInvalidArgument);  // and nothing was sent, or what follows would find it
    ASSERT_EQ(anycclAllToAllw(x.data(), sent.data(), sent_at.data(), sent_as.data(), y.data(),
                              received.data(), received_at.data(), received_as.data(),
                              comm.handle(), nullptr),
              anycclSuccess)
        << anycclGetLastError(comm.handle());
    std::vector<char> want(96, 0);
    for (std::size_t r = 0; r < 3; ++r)
      std::fill_n(want.begin() + static_cast<std::ptrdiff_t>(received_at[r]),
                  count(r, me) * (me % 2 == 0 ? 1 : 8), static_cast<char>('a' + r));
    EXPECT_EQ(y, want);
  });
}

std::string refused(anycclResult_t result, anycclComm_t comm) {
  EXPECT_EQ(result, anycclInvalidArgument);
  return anycclGetLastError(comm);
}

TEST(Topology, names_what_is_wrong_with_its_arguments) {
  run_ranks(2, [](Communicator& comm) {
    anycclTopology_t made = nullptr;
    const auto create = [&](const Ints& dims) {
      return refused(anycclTopologyCreateGrid(&made, static_cast<int>(dims.size()), dims.data(),
                                              nullptr, comm.handle()),
                     comm.handle());
    };
    EXPECT_NE(create({3}).find("dims[0] is 3 of 2 ranks"), std::string::npos);
    EXPECT_NE(create({1, 1}).find("dims are 1 x 1, but the communicator has 2"), std::string::npos);
    EXPECT_NE(create({2, 2, 0}).find("2 x 2 x 0"), std::string::npos);
    EXPECT_NE(create({-1}).find("dims[0] is -1"), std::string::npos);
    EXPECT_NE(create({}).find("ndims is 0"), std::string::npos);
    const Ints far{0, 2};
    EXPECT_NE(refused(anycclTopologyCreateGraph(&made, 2, far.data(), 0, nullptr, comm.handle()),
                      comm.handle())
                  .find("sources[1] is 2, which is not a rank of 2"),
              std::string::npos);
    EXPECT_EQ(made, nullptr);

    const Topology g = grid(comm, {2});
    int rank = 0;
    EXPECT_NE(refused(anycclTopologyCoords(g.get(), 2, &rank), nullptr).find("rank 2"),
              std::string::npos);
    EXPECT_NE(refused(anycclTopologyShift(g.get(), 1, 1, &rank, &rank), nullptr).find("dim 1"),
              std::string::npos);
    EXPECT_NE(refused(anycclNeighborAllGather(nullptr, &rank, 1, anycclInt32, g.get(),
                                              comm.handle(), nullptr),
                      comm.handle())
                  .find("sendbuff is NULL"),
              std::string::npos);
    auto part = comm.split(index(comm.rank()), 0);
    ASSERT_TRUE(part.ok());
    EXPECT_NE(refused(anycclNeighborAllGather(&rank, &rank, 1, anycclInt32, g.get(), part->handle(),
                                              nullptr),
                      part->handle())
                  .find("but the communicator's is rank 0 of 1"),
              std::string::npos);
    EXPECT_OK(part->destroy());
    ASSERT_OK(wait(comm.barrier()));
  });
}

}  // namespace
}  // namespace anyccl::test
