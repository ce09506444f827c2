// Sums of several leaves of each rank: bit for bit the aligned tree over all leaves, for every
// number of ranks that has them.

#include <fmt/format.h>

#include "support/effort.hpp"
#include "typed_sums.hpp"

namespace anyccl::test {
namespace {

constexpr anycclCollective_t kSums[] = {anycclCollAllReduce, anycclCollReduce,
                                        anycclCollReduceScatter};
const Types kTypes[] = {{DType::f32},
                        {DType::bf16},
                        {DType::f16},
                        {DType::f64},
                        {DType::complex64},
                        {DType::i32},
                        {DType::u8},
                        {DType::bf16, anycclFloat32},
                        {DType::bf16, kUnset, anycclFloat32},
                        {DType::f32, anycclBfloat16},
                        {DType::f32, kUnset, anycclFloat64},
                        {DType::i8, anycclInt64}};

anycclCollConfig_t configuration(const Types& types, int leaves) {
  anycclCollConfig_t config = configuration(types);
  config.leaves = leaves;
  return config;
}

/// The type in which leaves are added up, where the call does not say one.
DType sum_of(const Types& types) {
  const bool small = types.sum() == DType::f16 || types.sum() == DType::bf16;
  return small ? DType::f32 : types.sum();
}

/// The leaves of all ranks, of so many elements each.
std::vector<Memory> random_leaves(DType type, int leaves, std::size_t elements) {
  std::mt19937_64 random(elements);
  std::vector<Memory> all;
  for (int k = 0; k < leaves; ++k) all.push_back(random_elements(type, elements, random));
  return all;
}

/// Those of one rank, side by side.
Memory of_rank(const std::vector<Memory>& leaves, Communicator& comm) {
  const std::size_t each = leaves.size() / static_cast<std::size_t>(comm.size());
  Memory own;
  for (std::size_t k = 0; k < each; ++k) {
    const Memory& leaf = leaves[uindex(comm.rank()) * each + k];
    own.insert(own.end(), leaf.begin(), leaf.end());
  }
  return own;
}

/// `elements`: of a leaf, which have one block for each of any number of ranks here.
void check(Communicator& comm, anycclCollective_t kind, const Types& types, ReduceOp op, int leaves,
           std::size_t elements) {
  std::vector<Memory> all = random_leaves(types.input, leaves, elements);
  const Memory own = of_rank(all, comm);
  const bool blocks = kind == anycclCollReduceScatter;
  const std::size_t n = static_cast<std::size_t>(comm.size()), me = uindex(comm.rank());
  const std::size_t count = blocks ? elements / n : elements;
  Memory result(count * bytes_of(types.result()));
  const anycclResult_t code = run_sum(comm, kind, types.input, own.data(), result.data(), count, op,
                                      configuration(types, leaves));
  const std::string call = fmt::format(
      "{} of {} {} to {}, {}, {} leaves, {} ranks, by {}", static_cast<int>(kind), count,
      name_of(types.input), name_of(types.result()), name_of(op), leaves, n, comm.last_plan());
  ASSERT_EQ(code, anycclSuccess) << call << ": " << anycclGetLastError(comm.handle());
  if (kind == anycclCollReduce && me != 0) return;
  if (blocks)
    for (Memory& leaf : all) leaf = part_of(leaf, types.input, me * count, count);
  ASSERT_TRUE(result == definition(all, types.input, sum_of(types), types.result(), op)) << call;
}

class Leaves : public testing::TestWithParam<const char*> {};

TEST_P(Leaves, give_the_same_bits_for_every_number_of_ranks) {
  const Environment env(Environment::Variables{{"ANYCCL_TRANSPORT", GetParam()}});
  struct Numbers {
    int leaves, ranks;
  };
  // Over TCP the numbers of the second half alone: it is another way of the same sums.
  const std::vector<Numbers> all{{8, 1}, {8, 2},  {8, 4},  {12, 3}, {64, 1},
                                 {8, 8}, {12, 6}, {64, 2}, {64, 4}};
  const bool is_short = !is_long() && (kSanitized || *GetParam() != 0);
  for (const auto [leaves, ranks] : std::span(all).subspan(is_short ? 5 : 0))
    run_ranks(ranks, [&, leaves = leaves](Communicator& comm) {
      for (const Types& types : kTypes)
        for (const auto kind : kSums)
          for (const ReduceOp op : {ReduceOp::sum, ReduceOp::avg, ReduceOp::prod, ReduceOp::max}) {
            const bool is_sum = op == ReduceOp::sum;
            if (is_complex(types.input) && !is_sum) continue;
            const std::size_t small = 24, large = effort<std::size_t>(480, 2640, 48'000);
            check(comm, kind, types, op, leaves, small);
            if (is_sum) check(comm, kind, types, op, leaves, large);
          }
    });
}
INSTANTIATE_TEST_SUITE_P(By, Leaves, testing::Values("", "tcp"), [](const auto& by) {
  return *by.param == 0 ? std::string("any") : std::string(by.param);
});

TEST(LeavesOf, a_call_may_be_in_place_in_the_first) {
  run_ranks(2, [](Communicator& comm) {
    for (const auto kind : {anycclCollAllReduce, anycclCollReduceScatter}) {
      std::vector<Memory> all = random_leaves(DType::f32, 8, 2000);
      Memory own = of_rank(all, comm);
      const std::size_t me = uindex(comm.rank());
      const bool blocks = kind == anycclCollReduceScatter;
      const std::size_t count = blocks ? 1000 : 2000, first = blocks ? me * count : 0;
      Memory rest = own;
      ASSERT_EQ(run_sum(comm, kind, DType::f32, own.data(), own.data() + first * 4, count,
                        ReduceOp::sum, configuration({DType::f32}, 8)),
                anycclSuccess)
          << anycclGetLastError(comm.handle());
      for (Memory& leaf : all) leaf = part_of(leaf, DType::f32, first, count);
      const Memory expected = definition(all, DType::f32, DType::f32, DType::f32, ReduceOp::sum);
      std::copy(expected.begin(), expected.end(),
                rest.begin() + static_cast<std::ptrdiff_t>(first * 4));
      EXPECT_TRUE(own == rest);
    }
  });
}

TEST(LeavesOf, calls_do_not_travel_with_others_and_may_differ) {
  run_ranks(2, [](Communicator& comm) {
    std::vector<float> four(4000, 1), two(2000, 1), one(1000, 1), sums[3];
    for (auto& sum : sums) sum.resize(1000);
    anycclCollConfig_t eight = configuration({DType::f32}, 8),
                       twice = configuration({DType::f32}, 4);
    ASSERT_EQ(anycclGroupStart(), anycclSuccess);
    anycclAllReduceConfig(four.data(), sums[0].data(), 1000, anycclFloat32, anycclSum,
                          comm.handle(), nullptr, &eight);
    anycclAllReduceConfig(two.data(), sums[1].data(), 1000, anycclFloat32, anycclSum, comm.handle(),
                          nullptr, &twice);
    anycclAllReduce(one.data(), sums[2].data(), 1000, anycclFloat32, anycclSum, comm.handle(),
                    nullptr);
    ASSERT_EQ(anycclGroupEnd(), anycclSuccess) << anycclGetLastError(comm.handle());
    EXPECT_EQ(sums[0][999], 8);
    EXPECT_EQ(sums[1][999], 4);
    EXPECT_EQ(sums[2][999], 2);
  });
}

TEST(LeavesOf, views_are_those_of_the_configuration) {
  run_ranks(2, [](Communicator& comm) {
    std::vector<BFloat16> x(400, BFloat16{0x3f80});  // four leaves of one
    std::vector<float> all(100), half(50);
    anycclCollConfig_t config = configuration({DType::f32}, 8);
    comm.set_call_config(&config);
    ASSERT_OK(wait(comm.all_reduce(x, all, ReduceOp::sum)));
    EXPECT_EQ(all[99], 8);
    ASSERT_OK(wait(comm.reduce_scatter(x, half, ReduceOp::sum)));
    EXPECT_EQ(half[49], 8);
    ASSERT_OK(wait(comm.reduce(x, all, ReduceOp::avg, Rank{0})));
    EXPECT_EQ(all[0], comm.rank() == Rank{0} ? 1 : 8);
    EXPECT_EQ(comm.all_reduce(x, half, ReduceOp::sum).status().code(), Code::invalid_argument);
    const View odd(std::span<BFloat16>(x).first(399));
    EXPECT_EQ(comm.reduce(odd, View{}, ReduceOp::sum, Rank{0}).status().code(),
              Code::invalid_argument);
    comm.set_call_config(nullptr);
  });
}

TEST(LeavesOf, verified_calls_pass) {
  const Environment env(Environment::Variables{{"ANYCCL_VERIFY", "all"}});
  run_ranks(2, [](Communicator& comm) {
    for (const Types& types : kTypes)
      for (const auto kind : kSums) {
        check(comm, kind, types, ReduceOp::sum, 8, 480);
        if (bytes_of(types.result()) == bytes_of(types.input))
          check(comm, kind, types, ReduceOp::sum, 2, 480);
      }
    for (const DType type : {DType::f32, DType::bf16})
      check(comm, anycclCollAllReduce, {type}, ReduceOp::max, 8, 480);
    check(comm, anycclCollAllReduce, {DType::bf16, kUnset, anycclFloat32}, ReduceOp::min, 2, 480);
  });
}

struct Refused {
  int leaves;
  DType type;
  anycclCollective_t kind;
  anycclResult_t code;
  std::vector<const char*> words;
};

TEST(LeavesOf, calls_that_cannot_have_them_are_refused_by_name) {
  const Refused all[] = {
      {0, DType::f32, anycclCollAllReduce, anycclInvalidArgument, {"leaves is 0", "1 to 4096"}},
      {5000, DType::f32, anycclCollAllReduce, anycclInvalidArgument, {"leaves is 5000"}},
      {4, DType::f32, anycclCollAllReduce, anycclInvalidArgument, {"leaves is 4", "3 ranks"}},
      {9, DType::f32, anycclCollAllReduce, anycclInvalidArgument, {"leaves is 9", "power of two"}},
      {6, DType::f8e4m3, anycclCollAllReduce, anycclUnsupported, {"leaves", "f8e4m3"}},
      {6, DType::f32, anycclCollScan, anycclUnsupported, {"leaves", "scan"}},
  };
  run_ranks(3, [&](Communicator& comm) {
    const Memory in(8000);
    Memory out(8000);
    const auto run = [&](const Refused& one, ReduceOp op) {
      return run_sum(comm, one.kind, one.type, in.data(), out.data(), 100, op,
                     configuration({one.type}, one.leaves));
    };
    for (const Refused& one : all) {
      EXPECT_EQ(run(one, ReduceOp::sum), one.code);
      expect_said(comm, one.words);
    }
    anycclRedOp_t times{};
    float two = 2;
    ASSERT_EQ(anycclRedOpCreatePreMulSum(&times, &two, anycclFloat32, anycclScalarHostImmediate,
                                         comm.handle()),
              anycclSuccess);
    EXPECT_EQ(run({6, DType::f32, anycclCollAllReduce, {}, {}}, static_cast<ReduceOp>(times)),
              anycclUnsupported);
    ASSERT_EQ(anycclRedOpDestroy(times, comm.handle()), anycclSuccess);
    std::vector<float> overlapping(600);
    EXPECT_EQ(run_sum(comm, anycclCollAllReduce, DType::f32, overlapping.data(),
                      overlapping.data() + 150, 100, ReduceOp::sum, configuration({DType::f32}, 6)),
              anycclInvalidArgument);  // which is in the second leaf
  });
}

TEST(LeavesOf, ranks_that_have_not_alike_are_an_error) {
  run_ranks(2, [](Communicator& comm) {
    const Memory in(3200);
    Memory out(400);
    const int leaves = comm.rank() == Rank{0} ? 8 : 4;
    EXPECT_EQ(run_sum(comm, anycclCollAllReduce, DType::f32, in.data(), out.data(), 100,
                      ReduceOp::sum, configuration({DType::f32}, leaves)),
              anycclInvalidUsage)
        << anycclGetLastError(comm.handle());
  });
}

}  // namespace
}  // namespace anyccl::test
