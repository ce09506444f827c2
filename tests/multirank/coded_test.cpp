// AllReduce with a codec, each rank as a host of its own: bits, errors, and calls that differ.

#include <atomic>
#include <mutex>
#include <string>

#include "support/coded_reference.hpp"
#include "support/effort.hpp"
#include "support/ranks.hpp"

namespace anyccl::test {
namespace {

using codec::AllReduce;

std::string hosts_of(int ranks) {
  return std::string("abcdefghijklmnop").substr(0, static_cast<std::size_t>(ranks));
}

AllReduce must_create(Communicator& comm, CodecName codec) {
  auto made = AllReduce::create(comm, codec, true);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return made.ok() ? *std::move(made) : AllReduce();
}

TEST(Coded, sums_and_averages_are_those_of_the_definition_on_all_ranks) {
  for (const int ranks : {1, 2, 3, 5}) {
    for (const CodecName codec : kEveryCodec)
      run_ranks(ranks, [&](Communicator& comm) {
        AllReduce coded = must_create(comm, codec);
        for (const std::size_t count : {1UL, 127UL, 128UL, 129UL, 4000UL}) {
          const bool avg = count % 2 == 0;
          const Floats x = vector_of(index(comm.rank()), count);
          Floats y(count), in_place = x;
          const ReduceOp op = avg ? ReduceOp::avg : ReduceOp::sum;
          ASSERT_OK(coded.run(x, y, op));
          ASSERT_OK(coded.run(in_place, in_place, op));
          const Floats expected = ranks == 1 ? x : coded_sum(codec, hosts_of(ranks), count, avg);
          ASSERT_TRUE(same_bits(y, expected)) << ranks << " ranks, " << count << " elements";
          ASSERT_TRUE(same_bits(in_place, expected));
        }
        ASSERT_OK(coded.destroy());
      });
  }
}

TEST(Coded, an_element_does_not_depend_on_the_length_of_the_call) {
  for (const int ranks : {2, 3})
    run_ranks(ranks, [&](Communicator& comm) {
      AllReduce coded = must_create(comm, CodecName::int8);
      const std::size_t most = effort<std::size_t>(450000, 900000, 3000000);
      const Floats x = vector_of(index(comm.rank()), most);
      Floats whole(most);
      ASSERT_OK(coded.run(x, whole, ReduceOp::sum));
      ASSERT_TRUE(same_bits(whole, coded_sum(CodecName::int8, hosts_of(ranks), most, false)));
      for (const std::ptrdiff_t count : {128, 100096, 400000}) {
        Floats part(x.begin(), x.begin() + count);
        ASSERT_OK(coded.run(part, part, ReduceOp::sum));
        ASSERT_TRUE(same_bits(part, Floats(whole.begin(), whole.begin() + count))) << count;
      }
    });
}

TEST(Coded, elements_of_16_bits_are_rounded_once) {
  run_ranks(3, [](Communicator& comm) {
    AllReduce coded = must_create(comm, CodecName::int8);
    constexpr std::size_t kCount = 1000;
    const Floats x = vector_of(index(comm.rank()), kCount);
    std::vector<BFloat16> y(kCount);
    for (std::size_t i = 0; i < kCount; ++i)
      y[i].bits = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(x[i]) >> 16);
    ASSERT_OK(coded.run(y, y, ReduceOp::avg));
    const Floats expected = coded_sum(CodecName::int8, "abc", kCount, true);
    for (std::size_t i = 0; i < kCount; ++i) {
      const std::uint32_t bits = std::bit_cast<std::uint32_t>(expected[i]);
      ASSERT_EQ(y[i].bits, (bits + 0x7fff + (bits >> 16 & 1)) >> 16) << i;
    }
    std::vector<Float16> half(kCount, Float16{0x3c00});  // 1
    ASSERT_OK(coded.run(half, half, ReduceOp::sum));
    for (const Float16 one : half) ASSERT_NEAR(one.bits, 0x4200, 0x20);  // 3
  });
}

/// The root of the mean square of the error, of that of the sum.
double error_of(int ranks, CodecName codec) {
  const std::size_t count = effort<std::size_t>(1 << 14, 1 << 16, 1 << 20);
  std::vector<Floats> x(static_cast<std::size_t>(ranks), Floats(count));
  std::uint64_t state = 42;
  const auto uniform = [&] {
    state = state * 6364136223846793005 + 1442695040888963407;
    return static_cast<double>(state >> 11) * 0x1p-53;
  };
  for (Floats& each : x)
    for (float& one : each)
      one = static_cast<float>(std::sqrt(-2 * std::log(uniform() + 1e-300)) *
                               std::cos(6.283185307179586 * uniform()));
  double error = 0, size = 0;
  run_ranks(ranks, [&](Communicator& comm) {
    AllReduce coded = must_create(comm, codec);
    Floats y(count);
    ASSERT_OK(coded.run(x[uindex(comm.rank())], y, ReduceOp::sum));
    if (comm.rank() != Rank{0}) return;
    for (std::size_t i = 0; i < count; ++i) {
      double exact = 0;
      for (const Floats& each : x) exact += static_cast<double>(each[i]);
      error += (static_cast<double>(y[i]) - exact) * (static_cast<double>(y[i]) - exact);
      size += exact * exact;
    }
  });
  return std::sqrt(error / size);
}

TEST(Coded, the_error_does_not_grow_with_the_number_of_ranks) {
  // That of the mx types varies by a tenth with how near the largest elements are to a power of
  // two.
  for (const CodecName codec : {CodecName::int8, CodecName::int4}) {
    const double of_four = error_of(4, codec);
    EXPECT_NEAR(error_of(8, codec), of_four, 0.05 * of_four);
    EXPECT_NEAR(error_of(16, codec), of_four, 0.05 * of_four);
    EXPECT_NEAR(error_of(2, codec), of_four / std::sqrt(2), 0.05 * of_four);  // encoded once
  }
  EXPECT_NEAR(error_of(4, CodecName::int8), 0.0092, 0.0002);
}

TEST(Coded, with_one_host_nothing_is_coded) {
  run_ranks(3, [](Communicator& comm) {
    auto coded = AllReduce::create(comm, CodecName::int4);
    ASSERT_OK(coded.status());
    const Floats x = vector_of(index(comm.rank()), 5000);
    Floats y(x.size());
    ASSERT_OK(coded->run(x, y, ReduceOp::sum));
    EXPECT_TRUE(
        same_bits(y, tree({vector_of(0, 5000), vector_of(1, 5000), vector_of(2, 5000)}, 0, 3)));
  });
}

TEST(Coded, everywhere_makes_each_rank_a_host) {
  run_ranks(2, [](Communicator& comm) {
    auto coded = AllReduce::create(comm, CodecName::int4, true);
    ASSERT_OK(coded.status());
    Floats x = vector_of(index(comm.rank()), 500);
    ASSERT_OK(coded->run(x, x, ReduceOp::sum));
    EXPECT_TRUE(same_bits(x, coded_sum(CodecName::int4, "ab", 500, false)));
  });
}

/// Whether it is depends on the machine; all ranks know it, and have the bits of the one or the
/// other.
TEST(Coded, if_slow_all_ranks_use_the_codec_or_none_does) {
  for (const int ranks : {2, 3})
    run_ranks(ranks, [&](Communicator& comm) {
      auto coded = AllReduce::create(comm, CodecName::int8, true, true);
      ASSERT_OK(coded.status());
      constexpr std::size_t kCount = 1000;
      std::vector<Floats> all;
      for (int r = 0; r < ranks; ++r) all.push_back(vector_of(r, kCount));
      Floats x = all[uindex(comm.rank())];
      ASSERT_OK(coded->run(x, x, ReduceOp::sum));
      const bool uses = *coded->uses_codec(DType::f32);
      EXPECT_TRUE(same_bits(x, uses ? coded_sum(CodecName::int8, hosts_of(ranks), kCount, false)
                                    : tree(all, 0, all.size())));
      std::vector<BFloat16> small(kCount, BFloat16{0x3f80});  // 1
      ASSERT_OK(coded->run(small, small, ReduceOp::sum));
      for (const BFloat16 one : small) ASSERT_EQ(one.bits, ranks == 2 ? 0x4000 : 0x4040);
      std::vector<int> seen{uses ? 1 : 0, *coded->uses_codec(DType::bf16) ? 1 : 0}, most(2);
      ASSERT_OK(wait(comm.all_reduce(view(seen), view(most), ReduceOp::max)));
      EXPECT_EQ(seen, most);
      EXPECT_EQ(coded->uses_codec(DType::i32).status().code(), Code::unsupported);
      ASSERT_OK(coded->destroy());
    });
}

TEST(Coded, if_slow_contradicts_levels) {
  const Environment level(Environment::Variables{{"ANYCCL_REPRODUCIBLE", "2"}});
  run_ranks(2, [](Communicator& comm) {
    const Status status = AllReduce::create(comm, CodecName::int8, true, true).status();
    EXPECT_EQ(status.code(), Code::unsupported);
    EXPECT_NE(status.message().find("level 2 of reproducibility with codec int8 if slow"),
              std::string::npos)
        << status.message();
  });
}

TEST(Coded, an_infinity_is_seen_by_all) {
  run_ranks(3, [](Communicator& comm) {
    AllReduce coded = must_create(comm, CodecName::int8);
    Floats x(1000, 1.0F);
    if (comm.rank() == Rank{1}) x[300] = INFINITY;
    ASSERT_OK(coded.run(x, x, ReduceOp::sum));
    for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(std::isnan(x[i]), i / 128 == 2) << i;
  });
}

/// What `call` says on each rank, joined.
void expect_words(int ranks, const std::vector<std::string>& words,
                  const std::function<Status(Communicator&)>& call) {
  run_ranks(ranks, [&](Communicator& comm) {
    const Status status = call(comm);
    EXPECT_EQ(status.code(), Code::invalid_usage);
    for (const std::string& each : words)
      EXPECT_NE(status.message().find(each), std::string::npos) << status.message();
  });
}

TEST(Coded, ranks_that_differ_get_the_error_that_names_both) {
  expect_words(3, {"rank 0", "int8", "rank 2", "int4"}, [](Communicator& comm) {
    return AllReduce::create(comm, comm.rank() == Rank{2} ? CodecName::int4 : CodecName::int8)
        .status();
  });
  expect_words(2, {"rank 0", "int8, but", "rank 1", "int8, everywhere"}, [](Communicator& comm) {
    return AllReduce::create(comm, CodecName::int8, comm.rank() == Rank{1}).status();
  });
  expect_words(2, {"rank 0", "int8, but", "rank 1", "int8, if slow"}, [](Communicator& comm) {
    return AllReduce::create(comm, CodecName::int8, false, comm.rank() == Rank{1}).status();
  });
  expect_words(3, {"all_reduce of 1000 f32, sum", "rank 1 all_reduce of 999 f32, sum"},
               [](Communicator& comm) {
                 AllReduce coded = must_create(comm, CodecName::int8);
                 Floats x(comm.rank() == Rank{1} ? 999 : 1000);
                 return coded.run(x, x, ReduceOp::sum);
               });
  expect_words(2, {"all_reduce of 8 f32, sum", "rank 1 all_reduce of 8 f32, avg"},
               [](Communicator& comm) {
                 AllReduce coded = must_create(comm, CodecName::int8);
                 Floats x(8);
                 return coded.run(x, x, comm.rank() == Rank{1} ? ReduceOp::avg : ReduceOp::sum);
               });
  expect_words(2, {"all_reduce of 8 f32, sum", "rank 1 all_reduce of 8 bf16, sum"},
               [](Communicator& comm) {
                 AllReduce coded = must_create(comm, CodecName::int8);
                 Floats x(8);
                 View view(x);
                 if (comm.rank() == Rank{1}) view.dtype = DType::bf16;
                 const Status status = coded.run(view, view, ReduceOp::sum);
                 EXPECT_EQ(coded.run(x, x, ReduceOp::sum).message(), status.message());
                 return status;
               });
}

TEST(Coded, what_has_no_meaning_is_refused_and_changes_nothing) {
  run_ranks(2, [](Communicator& comm) {
    AllReduce coded = must_create(comm, CodecName::int8);
    std::vector<int> integers(4);
    Floats x(4, 1.0F), y(3);
    const auto expect = [](const Status& status, Code code, const std::string& words) {
      EXPECT_EQ(status.code(), code);
      EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
    };
    expect(coded.run(integers, integers, ReduceOp::sum), Code::unsupported,
           "datatype 2 with codec int8");
    expect(coded.run(x, x, ReduceOp::max), Code::unsupported, "operator 2 with codec int8");
    expect(coded.run(x, y, ReduceOp::sum), Code::invalid_argument, "4 elements and out 3");
    expect(coded.run(std::span(x).first(3), std::span(x).last(3), ReduceOp::sum),
           Code::invalid_argument, "overlap");
    expect(group([&] { return coded.run(x, x, ReduceOp::sum); }), Code::invalid_usage, "group");
    expect(AllReduce::create(comm, static_cast<CodecName>(anycclNumCodecs)).status(),
           Code::unsupported, "codec 7: there are");
    ASSERT_OK(coded.run(x, x, ReduceOp::sum));
    EXPECT_NEAR(x[0], 2.0F, 0.02F);
  });
}

TEST(Coded, a_rank_that_leaves_ends_the_wait_of_the_others) {
  run_ranks(3, [](Communicator& comm) {
    AllReduce coded = must_create(comm, CodecName::int8);
    if (comm.rank() == Rank{2}) return;
    Floats x(100000, 1.0F);
    EXPECT_FALSE(coded.run(x, x, ReduceOp::sum).ok());
  });
}

}  // namespace
}  // namespace anyccl::test
