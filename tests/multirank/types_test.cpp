// Calls whose result has another type than their input, or that add up in a wider one: bit for bit
// by the definition, whatever the algorithm.

#include <fmt/format.h>

#include "algorithm/catalog/algorithm.hpp"
#include "support/effort.hpp"
#include "typed_sums.hpp"

namespace anyccl::test {
namespace {

const Types kTypes[] = {
    {DType::bf16, anycclFloat32, kUnset},         // no rounding
    {DType::f16, anycclFloat32, kUnset},          //
    {DType::bf16, kUnset, anycclFloat32},         // one
    {DType::f16, anycclFloat16, anycclFloat32},   //
    {DType::bf16, anycclFloat16, anycclFloat32},  //
    {DType::f8e4m3, anycclFloat32, kUnset},       //
    {DType::f8e5m2, kUnset, anycclFloat32},       //
    {DType::f32, kUnset, anycclFloat64},          //
    {DType::f32, anycclFloat64, kUnset},          //
    {DType::f32, anycclBfloat16, kUnset},         //
    {DType::i8, anycclInt32, kUnset},             // which does not wrap
    {DType::u16, anycclUint64, anycclUint32},     // wraps as u32
};

anycclResult_t run(Communicator& comm, anycclCollective_t kind, const Memory& in, void* out,
                   std::size_t count, const Types& types, ReduceOp op, const char* algorithm) {
  anycclCollConfig_t config = configuration(types);
  config.algSelection = algorithm;
  return run_sum(comm, kind, types.input, in.data(), out, count, op, config);
}

void check(Communicator& comm, anycclCollective_t kind, std::size_t count, const Types& types,
           ReduceOp op, const char* algorithm) {
  const std::size_t n = uindex(Rank{comm.size()}), me = uindex(comm.rank());
  const bool blocks = kind == anycclCollReduceScatter;
  std::mt19937_64 random(count);
  std::vector<Memory> inputs;
  for (std::size_t r = 0; r < n; ++r)
    inputs.push_back(random_elements(types.input, count * (blocks ? n : 1), random));
  const DType output = types.result(), sum = types.sum();
  Memory result(count * bytes_of(output));
  const anycclResult_t code =
      run(comm, kind, inputs[me], result.data(), count, types, op, algorithm);
  const std::string call = fmt::format(
      "{} of {} {}, {} ranks, to {} by {}, {} by '{}'", static_cast<int>(kind), count,
      name_of(types.input), n, name_of(output), name_of(sum), name_of(op), comm.last_plan());
  ASSERT_EQ(code, anycclSuccess) << call << ": " << anycclGetLastError(comm.handle());
  if (kind == anycclCollReduce && me != 0) return;
  if (blocks)
    for (Memory& input : inputs) input = part_of(input, types.input, me * count, count);
  ASSERT_TRUE(result == definition(inputs, types.input, sum, output, op)) << call;
}

TEST(Types, give_what_the_definition_says) {
  const Environment env(Environment::Variables{{"ANYCCL_REPRODUCIBLE", "3"}});
  const std::vector<std::size_t> counts{1, effort<std::size_t>(100, 300, 1000),
                                        effort<std::size_t>(3000, 5000, 40'000)};
  for (const int ranks : kSanitized ? std::vector{2, 5} : std::vector{2, 3, 5, 8})
    run_ranks(ranks, [&](Communicator& comm) {
      for (const Types& types : kTypes)
        for (const auto kind : {anycclCollAllReduce, anycclCollReduce, anycclCollReduceScatter})
          for (const std::size_t count : counts)
            for (const ReduceOp op : {ReduceOp::sum, ReduceOp::avg}) {
              if (op == ReduceOp::avg && !is_float(types.input)) continue;
              check(comm, kind, count, types, op, nullptr);
            }
    });
}

TEST(Types, of_one_rank_are_converted) {
  run_ranks(1, [](Communicator& comm) {
    std::vector<float> x{1, 1.00390625F, -3, 1e30F};  // a tie, which goes to even
    std::vector<BFloat16> y(4);
    ASSERT_OK(wait(comm.all_reduce(x, y, ReduceOp::sum)));
    EXPECT_EQ(y[1].bits, 0x3f80);
    ASSERT_OK(wait(comm.reduce_scatter(y, x, ReduceOp::avg)));
    EXPECT_EQ(x[2], -3);
  });
}

TEST(Types, make_all_algorithms_round_once) {
  run_ranks(4, [](Communicator& comm) {
    for (const char* algorithm : {"one_shot", "two_shot", "reduce_broadcast", "tree_doubling",
                                  "tree_halving", "tree_two_level"})
      for (const Types& types : {kTypes[0], kTypes[2]})
        check(comm, anycclCollAllReduce, 5000, types, ReduceOp::sum, algorithm);
  });
}

/// Elements near the largest of their type, whose sum is infinite or no number in it.
Memory large_elements(DType type, std::size_t count, std::mt19937_64& random) {
  const Format f = format_of(type);
  Memory memory(count * bytes_of(type));
  for (std::size_t i = 0; i < count; ++i) {
    const double x = plain_value(f, f.past_finite() - 1) * static_cast<double>(random() % 1000);
    const Bits bits = nearest(f, (random() % 8 == 0 ? -x : x) / 1000);
    std::memcpy(memory.data() + i * bytes_of(type), &bits, bytes_of(type));
  }
  return memory;
}

void check_average(Communicator& comm, const Algorithm& algorithm, DType type, std::size_t count) {
  const bool blocks = algorithm.collective == Collective::reduce_scatter;
  const std::size_t n = uindex(Rank{comm.size()}), me = uindex(comm.rank());
  std::mt19937_64 random(count);
  std::vector<Memory> inputs;
  for (std::size_t r = 0; r < n; ++r)
    inputs.push_back(large_elements(type, count * (blocks ? n : 1), random));
  Memory result(count * bytes_of(type));
  anycclCollConfig_t config = ANYCCL_COLLCONFIG_INITIALIZER;
  config.algSelection = algorithm.name.data();
  const auto kind = static_cast<anycclCollective_t>(algorithm.collective);
  ASSERT_EQ(
      run_sum(comm, kind, type, inputs[me].data(), result.data(), count, ReduceOp::avg, config),
      anycclSuccess)
      << anycclGetLastError(comm.handle());
  if (algorithm.collective == Collective::reduce && me != 0) return;
  if (blocks)
    for (Memory& input : inputs) input = part_of(input, type, me * count, count);
  const Memory want = definition(inputs, type, DType::f32, type, ReduceOp::avg);
  ASSERT_TRUE(result == want) << algorithm.name << ", " << count << " " << name_of(type);
}

/// In any order: so few numbers of so few bits have no rounded sum in f32.
TEST(Averages, of_f16_and_f8_are_right_where_the_sum_is_too_large_for_the_type) {
  for (const char* transport : {"loopback", "tcp"}) {
    const Environment env(Environment::Variables{{"ANYCCL_TRANSPORT", transport}});
    for (const int ranks : effort<std::vector<int>>({3}, {2, 3, 4}, {2, 3, 4, 5, 8}))
      run_ranks(ranks, [](Communicator& comm) {
        for (const Algorithm* a : all_algorithms())
          if ((a->collective == Collective::all_reduce || a->collective == Collective::reduce ||
               a->collective == Collective::reduce_scatter) &&
              a->supports({a->collective, comm.size(), Rank{0}, false, {}}))
            for (const DType type : {DType::f16, DType::f8e4m3, DType::f8e5m2})
              for (const std::size_t count : {1UL, 1500UL})
                if (!testing::Test::HasFailure()) check_average(comm, *a, type, count);
      });
  }
}

TEST(Averages, that_one_step_adds_up_are_rounded_once) {
  const Environment env(Environment::Variables{{"ANYCCL_REPRODUCIBLE", "3"}});
  constexpr std::size_t kCount = kSanitized ? 5000 : 70'000;
  for (const int ranks : {2, 3, 4})
    run_ranks(ranks, [](Communicator& comm) {
      std::mt19937_64 random(7);
      std::vector<Memory> inputs;
      for (int r = 0; r < comm.size(); ++r)
        inputs.push_back(random_elements(DType::bf16, kCount, random));
      Memory result(inputs[0].size());
      ASSERT_EQ(run_sum(comm, anycclCollAllReduce, DType::bf16, inputs[uindex(comm.rank())].data(),
                        result.data(), kCount, ReduceOp::avg, ANYCCL_COLLCONFIG_INITIALIZER),
                anycclSuccess);
      EXPECT_TRUE(result ==
                  definition(inputs, DType::bf16, DType::f32, DType::bf16, ReduceOp::avg));
    });
}

TEST(Types, may_be_in_place_where_sizes_are_equal) {
  run_ranks(3, [](Communicator& comm) {
    std::mt19937_64 random(1);
    std::vector<Memory> inputs;
    for (int r = 0; r < 3; ++r) inputs.push_back(random_elements(DType::bf16, 3000, random));
    Memory mine = inputs[uindex(comm.rank())];
    const Types types{DType::bf16, anycclFloat16, anycclFloat32};
    ASSERT_EQ(
        run(comm, anycclCollAllReduce, mine, mine.data(), 3000, types, ReduceOp::sum, nullptr),
        anycclSuccess)
        << anycclGetLastError(comm.handle());
    EXPECT_TRUE(mine == definition(inputs, DType::bf16, DType::f32, DType::f16, ReduceOp::sum));
  });
}

TEST(Types, may_lie_side_by_side) {
  run_ranks(3, [](Communicator& comm) {
    std::mt19937_64 random(1);
    std::vector<Memory> inputs;
    for (int r = 0; r < 3; ++r) inputs.push_back(random_elements(DType::f32, 1000, random));
    Memory both(2000);  // the result, right before the input
    both.insert(both.end(), inputs[uindex(comm.rank())].begin(), inputs[uindex(comm.rank())].end());
    const Types types{DType::f32, anycclBfloat16, kUnset};
    const Memory in(both.begin() + 2000, both.end());
    anycclCollConfig_t config = ANYCCL_COLLCONFIG_INITIALIZER;
    config.outputType = types.output;
    ASSERT_EQ(anycclAllReduceConfig(both.data() + 2000, both.data(), 1000, anycclFloat32, anycclSum,
                                    comm.handle(), nullptr, &config),
              anycclSuccess)
        << anycclGetLastError(comm.handle());
    both.resize(2000);
    EXPECT_TRUE(both == definition(inputs, DType::f32, DType::f32, DType::bf16, ReduceOp::sum));
  });
}

TEST(Types, are_compared_with_the_buffers_of_each_call) {
  run_ranks(2, [](Communicator& comm) {
    Memory in(200), out(800), both(900);
    const Types types{DType::u16, anycclUint64, anycclUint32};
    const auto call = [&](const Memory& from, void* to) {
      return run(comm, anycclCollAllReduce, from, to, 100, types, ReduceOp::sum, nullptr);
    };
    ASSERT_EQ(call(in, out.data()), anycclSuccess) << anycclGetLastError(comm.handle());
    const Memory wide(both);
    EXPECT_EQ(call(both, both.data() + 100), anycclInvalidArgument);
    EXPECT_TRUE(both == wide);
  });
}

TEST(Types, of_views_are_those_of_the_result) {
  run_ranks(2, [](Communicator& comm) {
    std::vector<BFloat16> x(100, BFloat16{0x3f81});  // 1 and a bit
    std::vector<float> wide(100);
    ASSERT_OK(wait(comm.all_reduce(x, wide, ReduceOp::sum)));
    EXPECT_EQ(wide[0], 2 * 1.0078125F);
    std::vector<float> of_two(50);
    ASSERT_OK(wait(comm.reduce_scatter(x, of_two, ReduceOp::sum)));
    EXPECT_EQ(of_two[49], 2 * 1.0078125F);
    const bool is_root = comm.rank() == Rank{0};
    ASSERT_OK(wait(comm.reduce(x, is_root ? View(x) : View{}, ReduceOp::max, Rank{0})));
    ASSERT_OK(wait(comm.reduce(x, wide, ReduceOp::max, Rank{0})));
    EXPECT_EQ(wide[99], is_root ? 1.0078125F : 2 * 1.0078125F);  // elsewhere it is unchanged
    anycclCollConfig_t config = ANYCCL_COLLCONFIG_INITIALIZER;
    config.outputType = anycclFloat32;
    comm.set_call_config(&config);  // of calls whose views do not say a type
    ASSERT_OK(wait(comm.all_reduce(x, x, ReduceOp::max)));
    EXPECT_EQ(x[99].bits, 0x3f81);
    comm.set_call_config(nullptr);
  });
}

#if defined(__x86_64__)
TEST(Types, do_not_depend_on_the_floating_point_mode_of_the_caller) {
  run_ranks(2, [](Communicator& comm) {
    const unsigned mode = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(mode | 0x8040);  // denormals are zeros
    Memory in(400), out(800);
    for (std::size_t i = 0; i < in.size(); i += 4) in[i] = 1;
    const Types types{DType::f32, anycclFloat64, kUnset};
    const anycclResult_t code =
        run(comm, anycclCollAllReduce, in, out.data(), 100, types, ReduceOp::sum, nullptr);
    __builtin_ia32_ldmxcsr(mode);
    ASSERT_EQ(code, anycclSuccess) << anycclGetLastError(comm.handle());
    const std::vector<Memory> inputs{in, in};
    EXPECT_TRUE(out == definition(inputs, DType::f32, DType::f64, DType::f64, ReduceOp::sum));
  });
}
#endif

struct Refused {
  Types types;
  anycclCollective_t kind;
  ReduceOp op;
  anycclResult_t code;
  std::vector<const char*> words;
};

TEST(Types, without_a_meaning_are_refused_with_both_names) {
  const Refused all[] = {
      {{DType::f32, anycclInt32, kUnset},
       anycclCollAllReduce,
       ReduceOp::sum,
       anycclUnsupported,
       {"outputType", "i32", "f32"}},
      {{DType::f32, kUnset, anycclBfloat16},
       anycclCollAllReduce,
       ReduceOp::sum,
       anycclUnsupported,
       {"accumulateType", "bf16", "f32"}},
      {{DType::i32, anycclInt8, kUnset},
       anycclCollAllReduce,
       ReduceOp::sum,
       anycclUnsupported,
       {"outputType", "i8", "i32"}},
      {{DType::bf16, anycclFloat32, kUnset},
       anycclCollScan,
       ReduceOp::sum,
       anycclUnsupported,
       {"outputType", "scan"}},
      {{DType::bf16, 99, kUnset},
       anycclCollAllReduce,
       ReduceOp::sum,
       anycclInvalidArgument,
       {"outputType", "99"}},
  };
  run_ranks(2, [&](Communicator& comm) {
    for (const Refused& one : all) {
      const Memory in(800);
      Memory out(800);
      EXPECT_EQ(run(comm, one.kind, in, out.data(), 100, one.types, one.op, nullptr), one.code);
      expect_said(comm, one.words);
    }
    Memory both(400);
    EXPECT_EQ(run(comm, anycclCollAllReduce, both, both.data(), 100,
                  {DType::bf16, anycclFloat32, kUnset}, ReduceOp::sum, nullptr),
              anycclInvalidArgument);
    expect_said(comm, {"overlap"});
  });
}

TEST(Types, that_ranks_have_not_alike_are_an_error) {
  run_ranks(2, [](Communicator& comm) {
    const Memory in(400);
    Memory out(800);
    const Types types{DType::bf16, comm.rank() == Rank{0} ? anycclFloat32 : kUnset, kUnset};
    EXPECT_EQ(run(comm, anycclCollAllReduce, in, out.data(), 200, types, ReduceOp::sum, nullptr),
              anycclInvalidUsage)
        << anycclGetLastError(comm.handle());
  });
}

}  // namespace
}  // namespace anyccl::test
