// What collectives are to each other: the identities of the textbooks, bit for bit where one
// algorithm adds in one order.

#include <numeric>

#include "support/ranks.hpp"

namespace anyccl::test {
namespace {

constexpr std::size_t kBlock = 1237;  // elements per rank

struct Data {
  explicit Data(Communicator& comm)
      : n(static_cast<std::size_t>(comm.size())), me(static_cast<std::size_t>(comm.rank())) {
    for (std::size_t i = 0; i < n * kBlock; ++i)
      whole.push_back(static_cast<std::int64_t>((me + 1) * 1000003 + i * 7919));
    block.assign(whole.begin(), whole.begin() + kBlock);
  }
  std::vector<std::int64_t> blocks() const { return std::vector<std::int64_t>(n * kBlock, -1); }
  std::size_t n, me;
  std::vector<std::int64_t> whole, block;  // a block for each rank, and one
};

class Identity : public testing::TestWithParam<const char*> {
 protected:
  void on_ranks(const Body& body) const {
    const Environment env(Environment::Variables{{"ANYCCL_TRANSPORT", GetParam()}});
    for (const int ranks : {1, 2, 3, 5, 8}) run_ranks(ranks, body);
  }
};
INSTANTIATE_TEST_SUITE_P(Over, Identity, testing::Values("loopback", "tcp"),
                         [](const auto& test) { return std::string(test.param); });

TEST_P(Identity, all_gather_is_gather_and_broadcast) {
  on_ranks([](Communicator& comm) {
    const Data d(comm);
    auto once = d.blocks(), twice = d.blocks();
    ASSERT_OK(wait(comm.all_gather(view(d.block), view(once))));
    ASSERT_OK(wait(comm.gather(view(d.block), view(twice), Rank{0})));
    ASSERT_OK(wait(comm.broadcast(view(twice), view(twice), Rank{0})));
    EXPECT_EQ(once, twice);
  });
}

TEST_P(Identity, scan_is_exscan_and_own_and_ends_as_reduce) {
  on_ranks([](Communicator& comm) {
    const Data d(comm);
    std::vector<std::int64_t> with_own(kBlock), before(kBlock), sum(kBlock);
    ASSERT_OK(wait(comm.scan(view(d.block), view(with_own), ReduceOp::sum)));
    ASSERT_OK(wait(comm.exscan(view(d.block), view(before), ReduceOp::sum)));
    ASSERT_EQ(anycclReduceLocal(d.block.data(), before.data(), kBlock, anycclInt64, anycclSum,
                                comm.handle()),
              anycclSuccess);
    EXPECT_EQ(before, with_own);
    const Rank last{comm.size() - 1};
    ASSERT_OK(wait(comm.reduce(view(d.block), view(sum), ReduceOp::sum, last)));
    if (comm.rank() == last) {
      EXPECT_EQ(sum, with_own);
    }
  });
}

TEST_P(Identity, reduce_scatter_is_reduce_and_scatter) {
  on_ranks([](Communicator& comm) {
    const Data d(comm);
    std::vector<std::int64_t> once(kBlock), twice(kBlock);
    auto sum = d.blocks();
    ASSERT_OK(wait(comm.reduce_scatter(view(d.whole), view(once), ReduceOp::sum)));
    ASSERT_OK(wait(comm.reduce(view(d.whole), view(sum), ReduceOp::sum, Rank{0})));
    ASSERT_OK(wait(comm.scatter(view(sum), view(twice), Rank{0})));
    EXPECT_EQ(once, twice);
  });
}

TEST_P(Identity, all_reduce_is_reduce_and_broadcast_and_reduce_scatter_and_all_gather) {
  on_ranks([](Communicator& comm) {
    const Data d(comm);
    auto once = d.blocks(), by_root = d.blocks(), by_parts = d.blocks();
    std::vector<std::int64_t> part(kBlock);
    ASSERT_OK(wait(comm.all_reduce(view(d.whole), view(once), ReduceOp::sum)));
    ASSERT_OK(wait(comm.reduce(view(d.whole), view(by_root), ReduceOp::sum, Rank{0})));
    ASSERT_OK(wait(comm.broadcast(view(by_root), view(by_root), Rank{0})));
    ASSERT_OK(wait(comm.reduce_scatter(view(d.whole), view(part), ReduceOp::sum)));
    ASSERT_OK(wait(comm.all_gather(view(part), view(by_parts))));
    EXPECT_EQ(once, by_root);
    EXPECT_EQ(once, by_parts);
  });
}

TEST_P(Identity, gather_undoes_scatter) {
  on_ranks([](Communicator& comm) {
    const Data d(comm);
    std::vector<std::int64_t> mine(kBlock);
    auto back = d.blocks();
    const Rank root{comm.size() - 1};
    ASSERT_OK(wait(comm.scatter(view(d.whole), view(mine), root)));
    ASSERT_OK(wait(comm.gather(view(mine), view(back), root)));
    if (comm.rank() == root) {
      EXPECT_EQ(back, d.whole);
    }
  });
}

TEST_P(Identity, all_to_all_is_a_transpose_and_twice_it_is_nothing) {
  on_ranks([](Communicator& comm) {
    const Data d(comm);
    auto turned = d.blocks(), back = d.blocks();
    ASSERT_OK(wait(comm.all_to_all(view(d.whole), view(turned))));
    ASSERT_OK(wait(comm.all_to_all(view(turned), view(back))));
    EXPECT_EQ(back, d.whole);
    for (std::size_t r = 0; r < d.n; ++r)  // block r is block `me` of rank r
      EXPECT_EQ(turned[r * kBlock],
                static_cast<std::int64_t>((r + 1) * 1000003 + d.me * kBlock * 7919));
  });
}

TEST_P(Identity, v_forms_with_equal_blocks_are_the_plain_ones) {
  on_ranks([](Communicator& comm) {
    const Data d(comm);
    const std::vector<std::size_t> counts(d.n, kBlock);
    std::vector<std::size_t> displs(d.n);
    std::exclusive_scan(counts.begin(), counts.end(), displs.begin(), std::size_t{0});
    auto plain = d.blocks(), v_form = d.blocks();
    ASSERT_OK(wait(comm.all_gather(view(d.block), view(plain))));
    ASSERT_OK(wait(comm.all_gather_v(view(d.block), view(v_form), {counts, displs})));
    EXPECT_EQ(plain, v_form);
    ASSERT_OK(wait(comm.all_to_all(view(d.whole), view(plain))));
    ASSERT_OK(
        wait(comm.all_to_all_v(view(d.whole), {counts, displs}, view(v_form), {counts, displs})));
    EXPECT_EQ(plain, v_form);
    std::vector<std::int64_t> part(kBlock), v_part(kBlock);
    ASSERT_OK(wait(comm.reduce_scatter(view(d.whole), view(part), ReduceOp::max)));
    ASSERT_OK(
        wait(comm.reduce_scatter_v(view(d.whole), {counts, displs}, view(v_part), ReduceOp::max)));
    EXPECT_EQ(part, v_part);
  });
}

}  // namespace
}  // namespace anyccl::test
