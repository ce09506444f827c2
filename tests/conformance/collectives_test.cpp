// Every algorithm moves real bytes right, with ranks as threads, over loopback and over TCP.

#include <random>
#include <set>

#include "conformance/run_collective.hpp"

namespace anyccl::test {
namespace {

using Case = std::tuple<const Algorithm*, std::string>;  // algorithm, transport

class Collectives : public testing::TestWithParam<Case> {
 protected:
  const Algorithm& algorithm() const { return *std::get<0>(GetParam()); }
  Environment environment() const {
    return Environment({{"ANYCCL_ALGO", std::string(algorithm().name)},
                        {"ANYCCL_TRANSPORT", std::get<1>(GetParam())}});
  }
  bool supports(int ranks) const {
    return algorithm().supports({algorithm().collective, ranks, Rank{0}, false, {}});
  }
};

using Sizes = std::vector<int>;
Sizes sizes() {
  return effort<Sizes>({3}, {1, 2, 3, 4}, {1, 2, 3, 4, 5, 8});
}
Sizes sizes_in_arena() {
  return effort<Sizes>({3}, {3}, {2, 3, 4});
}

TEST_P(Collectives, are_right_for_all_counts_types_and_places) {
  const Environment env = environment();
  for (const int ranks : sizes()) {
    if (!supports(ranks)) continue;
    run_ranks(ranks, [&](Communicator& comm) {
      for (const std::size_t count : kCounts)
        if (!testing::Test::HasFailure()) run_once(comm, algorithm().collective, count);
    });
  }
}

/// Between so many ranks a tile may publish more often than there are slots.
TEST_P(Collectives, are_right_on_many_ranks) {
  const Environment env = environment();
  for (const int ranks : effort<Sizes>({}, {7}, {6, 7, 8, 12, 17})) {
    if (!supports(ranks)) continue;
    run_ranks(ranks, [&](Communicator& comm) {
      for (const std::size_t count : {1UL, 257UL, 20000UL})
        if (!testing::Test::HasFailure()) run_once(comm, algorithm().collective, count);
    });
  }
}

/// Peers read inputs and results where they lie, or not, as each rank has it.
TEST_P(Collectives, are_right_in_memory_that_peers_read) {
  if (std::get<1>(GetParam()) == "tcp") return;  // which copies everything
  const Environment env = environment();
  for (const int ranks : sizes_in_arena()) {
    if (!supports(ranks)) continue;
    for (const int private_rank : {-1, 1})
      run_ranks(ranks, [&](Communicator& comm) {
        in_arena = index(comm.rank()) != private_rank;
        for (const std::size_t count : {257UL, 20000UL, kSeveralTiles})
          if (!testing::Test::HasFailure()) run_once(comm, algorithm().collective, count);
        in_arena = false;
      });
  }
}

/// Operations of all sizes, by the algorithms that are chosen, follow each other in the same slots.
class Sequences : public testing::TestWithParam<std::tuple<Collective, std::string>> {};

TEST_P(Sequences, may_follow_each_other_in_any_order) {
  const auto& [collective, transport] = GetParam();
  const Environment env(Environment::Variables{{"ANYCCL_TRANSPORT", transport}});
  run_ranks(4, [collective = collective](Communicator& comm) {
    std::mt19937 random(2026);  // the same on all ranks
    for (int i = 0, last = effort(20, 60, 60); i < last && !testing::Test::HasFailure(); ++i) {
      run_once(comm, collective, kCounts[random() % (kCounts.size() - 1)]);
      if (random() % 2 == 0)
        run_once(comm, Collective::broadcast, kCounts[random() % (kCounts.size() - 1)]);
      if (random() % 3 == 0)
        run_once(comm, Collective::all_reduce, kCounts[random() % (kCounts.size() - 1)]);
    }
  });
}

template <typename T>
void average(Communicator& comm, std::size_t count) {
  const int n = comm.size();
  const auto me = static_cast<std::size_t>(comm.rank());
  const bool is_last = comm.rank() == Rank{n - 1};
  const auto blocks = static_cast<std::size_t>(n) * count;
  std::vector<T> x(blocks), everywhere(blocks), mine(count), at_last(blocks);
  for (std::size_t i = 0; i < blocks; ++i) x[i] = static_cast<T>(input(static_cast<int>(me), i));
  ASSERT_OK(wait(comm.all_reduce(view(x), view(everywhere), ReduceOp::avg)));
  ASSERT_OK(wait(comm.reduce_scatter(view(x), view(mine), ReduceOp::avg)));
  ASSERT_OK(wait(comm.reduce(view(x), view(at_last), ReduceOp::avg, Rank{n - 1})));
  for (std::size_t i = 0; i < blocks; ++i) {
    long sum = 0;
    for (int r = 0; r < n; ++r) sum += input(r, i);
    const T want = static_cast<T>(sum) / static_cast<T>(n);
    ASSERT_EQ(everywhere[i], want) << i;
    if (i / count == me) {
      ASSERT_EQ(mine[i % count], want) << i;
    }
    ASSERT_EQ(at_last[i], is_last ? want : T{}) << i;
  }
}

TEST(Average, is_the_sum_divided_once) {
  for (const char* transport : {"loopback", "tcp"}) {
    const Environment env(Environment::Variables{{"ANYCCL_TRANSPORT", transport}});
    for (const int ranks : {1, 2, 3, 5})
      run_ranks(ranks, [](Communicator& comm) {
        for (const std::size_t count : {1U, 5U, 1000U, 100003U}) {
          average<float>(comm, count);
          average<std::int64_t>(comm, count);
        }
      });
  }
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Algorithm* a : all_algorithms())
    for (const char* transport : {"loopback", "tcp"}) all.emplace_back(a, transport);
  return all;
}
std::string case_name(const testing::TestParamInfo<Case>& info) {
  std::string text = id(*std::get<0>(info.param)) + "_over_" + std::get<1>(info.param);
  std::replace(text.begin(), text.end(), '/', '_');
  return text;
}
INSTANTIATE_TEST_SUITE_P(Catalog, Collectives, testing::ValuesIn(cases()), case_name);

std::set<Collective> collectives() {
  std::set<Collective> all;
  for (const Algorithm* a : all_algorithms()) all.insert(a->collective);
  return all;
}
INSTANTIATE_TEST_SUITE_P(Catalog, Sequences,
                         testing::Combine(testing::ValuesIn(collectives()),
                                          testing::Values("loopback", "tcp")),
                         [](const auto& made) {
                           return std::string(name(std::get<0>(made.param))) + "_over_" +
                                  std::get<1>(made.param);
                         });

}  // namespace
}  // namespace anyccl::test
