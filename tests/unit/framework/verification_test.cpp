// Verification of collectives, with all ranks in one thread: results that are right pass, whatever
// the data and the order of additions; results with a planted fault do not, and the message names
// who is wrong.

#include "framework/verification/verification.hpp"

#include <bit>
#include <cstdio>
#include <cstdlib>

#include "support/effort.hpp"
#include "verified_world.hpp"

namespace anyccl::test {
namespace {

/// VERIFICATION_CASES=10000000 says another number, VERIFICATION_FIRST=1 another first seed.
std::uint64_t cases_of(std::uint64_t sanitized, std::uint64_t short_form, std::uint64_t long_form) {
  const char* const asked = std::getenv("VERIFICATION_CASES");
  return asked == nullptr ? effort(sanitized, short_form, long_form)
                          : std::strtoull(asked, nullptr, 10);
}

constexpr Collective kKinds[] = {
    Collective::all_reduce, Collective::reduce,           Collective::reduce_scatter,
    Collective::scan,       Collective::exscan,           Collective::broadcast,
    Collective::all_gather, Collective::gather,           Collective::scatter,
    Collective::all_to_all, Collective::all_gather_v,     Collective::all_to_all_v,
    Collective::gather_v,   Collective::reduce_scatter_v, Collective::scatter_v};

// --- data ---------------------------------------------------------------------------------------

enum class Data { normal, wide, positive, any_bits, tiny, cancelling, huge };
constexpr Data kData[] = {Data::normal, Data::wide,       Data::positive, Data::any_bits,
                          Data::tiny,   Data::cancelling, Data::huge};

Memory elements(DType dtype, Data data, std::size_t rank, std::size_t count, std::uint64_t seed) {
  // Pairs of ranks cancel each other but for a little.
  Random random(data == Data::cancelling ? mix(seed, rank / 2) : mix(seed, rank + 100));
  if (data == Data::any_bits || !(is_float(dtype) || is_complex(dtype)))
    return random_elements(dtype, count, random);
  const Format f = format_of(dtype);
  const std::size_t bytes = bytes_of(dtype) / (is_complex(dtype) ? 2 : 1),
                    numbers = count * (is_complex(dtype) ? 2 : 1);
  const double largest = plain_value(f, f.past_finite() - 1), least = plain_value(f, 1);
  std::normal_distribution<double> normal;
  Memory memory(numbers * bytes);
  for (std::size_t i = 0; i < numbers; ++i) {
    double x = normal(random);
    if (data == Data::wide) x = std::ldexp(x, static_cast<int>(below(random, 20)) - 10);
    if (data == Data::positive) x = std::abs(x);
    if (data == Data::tiny) x *= least * 8;
    if (data == Data::huge) x *= largest / 4;
    if (data == Data::cancelling && rank % 2 == 1)
      x = -x * (1 + 0x1p-7 * static_cast<double>(i % 3));
    const Bits b = bytes == 8   ? std::bit_cast<Bits>(x)
                   : bytes == 4 ? std::bit_cast<std::uint32_t>(static_cast<float>(x))
                                : nearest(f, x);
    std::memcpy(memory.data() + i * bytes, &b, bytes);
  }
  return memory;
}

bool is_sum(Collective kind) {
  return reduces(kind);
}

/// Of those that can be verified.
std::vector<ReduceOp> operators_of(DType dtype, Collective kind) {
  std::vector<ReduceOp> all;
  for (int op = 0; op < anycclNumOps; ++op) {
    const auto o = static_cast<ReduceOp>(op);
    Call call;
    call.collective = kind;
    call.dtype = dtype;
    call.op = o;
    const bool exists = o == ReduceOp::avg ? divide_kernel(dtype).ok() && !is_prefix(kind)
                                           : reduce_kernel(dtype, o).ok();
    if (exists && method_of(call, dtype, dtype, nullptr, 2).ok()) all.push_back(o);
  }
  return all;
}

TEST(Verification, passes_what_is_right) {
  const char* const asked = std::getenv("VERIFICATION_FIRST");
  const std::uint64_t first = asked == nullptr ? 20261126 : std::strtoull(asked, nullptr, 10);
  const std::uint64_t cases = cases_of(300, 2000, 200'000);
  for (std::uint64_t seed = first; seed < first + cases; ++seed) {
    Random random(seed);
    const Collective kind = kKinds[below(random, std::size(kKinds))];
    const auto dtype = static_cast<DType>(below(random, anycclNumTypes));
    ReduceOp op = ReduceOp::sum;
    if (is_sum(kind)) {
      const auto ops = operators_of(dtype, kind);
      op = ops[below(random, ops.size())];
    }
    const Data data = kData[below(random, std::size(kData))];
    const int n = 2 + static_cast<int>(below(random, below(random, 8) == 0 ? 30 : 7));
    const std::size_t most = std::size_t{1} << below(random, n > 8                    ? 8
                                                             : below(random, 20) == 0 ? 18
                                                                                      : 12);
    World world(kind, dtype, op, n, below(random, most), seed);
    world.fill(
        [&](std::size_t r, std::size_t count) { return elements(dtype, data, r, count, seed); });
    world.begin();
    world.run();
    for (const Status& said : world.end())
      ASSERT_TRUE(said.ok()) << "seed " << seed << ", data " << static_cast<int>(data) << ", " << n
                             << " ranks, " << (world.is_tree() ? "tree: " : "chain: ")
                             << said.message();
  }
}

struct Types {
  DType input, sum, output;
};
constexpr Types kConfigured[] = {
    {DType::bf16, DType::f32, DType::f32},  {DType::f16, DType::f32, DType::f32},
    {DType::bf16, DType::f32, DType::bf16}, {DType::f16, DType::f32, DType::f16},
    {DType::bf16, DType::f32, DType::f16},  {DType::f32, DType::f64, DType::f32},
    {DType::f32, DType::f64, DType::f64},   {DType::f32, DType::f32, DType::bf16},
    {DType::f32, DType::f32, DType::f16},   {DType::f64, DType::f64, DType::f32},
    {DType::f32, DType::f32, DType::f32},   {DType::i8, DType::i32, DType::i32},
    {DType::u16, DType::u64, DType::u64},   {DType::i64, DType::i64, DType::i64}};
constexpr Collective kTyped[] = {Collective::all_reduce, Collective::reduce,
                                 Collective::reduce_scatter};

/// A call whose result has another type, or whose ranks have several leaves.
std::unique_ptr<World> configured_world(std::uint64_t seed, Data& data) {
  Random random(seed);
  const Types types = kConfigured[below(random, std::size(kConfigured))];
  const ReduceOp op =
      is_float(types.input) && below(random, 2) == 0 ? ReduceOp::avg : ReduceOp::sum;
  const Collective kind = kTyped[below(random, std::size(kTyped))];
  const int n = 2 + static_cast<int>(below(random, 7));
  const std::size_t most = std::size_t{1} << below(random, 13);
  auto world = std::make_unique<World>(kind, types.input, op, n, 1 + below(random, most), seed);
  world->configure(types.sum, types.output, std::size_t{1} << below(random, 3));
  data = kData[below(random, std::size(kData))];
  return world;
}

TEST(Verification, passes_right_results_of_other_types_and_of_leaves) {
  const std::uint64_t cases = cases_of(200, 1000, 50'000);
  for (std::uint64_t seed = 1; seed <= cases; ++seed) {
    Data data;
    const auto world = configured_world(seed, data);
    world->fill([&](std::size_t r, std::size_t count) {
      return elements(world->input(), data, r, count, seed);
    });
    world->begin();
    world->run();
    for (const Status& said : world->end())
      ASSERT_TRUE(said.ok()) << "seed " << seed << ", data " << static_cast<int>(data) << ": "
                             << said.message();
  }
}

TEST(Verification, finds_lost_contributions_to_results_of_other_types_and_of_leaves) {
  const std::uint64_t cases = effort<std::uint64_t>(50, 300, 5000);
  for (std::uint64_t seed = 1; seed <= cases; ++seed) {
    Data data;
    const auto world = configured_world(seed, data);
    world->fill([&](std::size_t r, std::size_t count) {
      return elements(world->input(), Data::normal, r, count, seed);
    });
    world->begin();
    world->run();
    const std::size_t wrong = world->someone(), lost = below(world->random(), world->n());
    std::vector<std::size_t> ranks = world->all_ranks();
    ranks.erase(ranks.begin() + static_cast<std::ptrdiff_t>(lost));
    const Memory result = world->sum(wrong, ranks);
    if (result == world->sum(wrong, world->all_ranks())) continue;  // it was zeros, such as of i8
    world->replace(wrong, result);
    const std::vector<Status> said = world->end();
    ASSERT_FALSE(said[wrong].ok()) << "seed " << seed;
    ASSERT_NE(said[wrong].message().find(rank_name(Rank{static_cast<int>(wrong)})),
              std::string::npos)
        << said[wrong].message();
  }
}

// --- faults -------------------------------------------------------------------------------------

enum class Fault { stale_line, zero_line, swapped, shifted, dropped, doubled, exponent };
constexpr Fault kFaults[] = {Fault::stale_line, Fault::zero_line, Fault::swapped, Fault::shifted,
                             Fault::dropped,    Fault::doubled,   Fault::exponent};

/// Changes bytes of a result as a fault of a transport or algorithm does.
void plant(Fault fault, Memory& result, std::size_t element, Random& random) {
  constexpr std::size_t kLine = 64, kBlock = 4096;
  const std::size_t lines = result.size() / kLine;
  const std::size_t at = below(random, lines) * kLine;
  switch (fault) {
    case Fault::stale_line:  // another rank's or call's
      std::swap_ranges(result.begin() + static_cast<std::ptrdiff_t>(at),
                       result.begin() + static_cast<std::ptrdiff_t>(at + kLine / 2),
                       result.begin() + static_cast<std::ptrdiff_t>(at + kLine / 2));
      return;
    case Fault::zero_line:
      std::memset(result.data() + at, 0, kLine);
      return;
    case Fault::swapped: {
      const std::size_t block = std::min(kBlock, result.size() / 2 / kLine * kLine);
      std::swap_ranges(result.begin(), result.begin() + static_cast<std::ptrdiff_t>(block),
                       result.begin() + static_cast<std::ptrdiff_t>(block));
      return;
    }
    case Fault::shifted:
      std::memmove(result.data() + element, result.data(), result.size() - element);
      return;
    default: {
      const std::size_t i = below(random, result.size() / element);
      result[(i + 1) * element - 1] ^= 0x40;  // little endian: the largest exponent bit
    }
  }
}

struct Tally {
  std::uint64_t planted = 0, found = 0, named = 0;
  std::string missed;
};

void try_fault(std::uint64_t seed, Tally& tally) {
  Random random(seed);
  const Collective kind = kKinds[below(random, std::size(kKinds))];
  constexpr DType kTypes[] = {DType::f32, DType::f32, DType::f64,
                              DType::i32, DType::i64, DType::u16};
  const DType dtype = kTypes[below(random, std::size(kTypes))];
  const auto fault = kFaults[below(random, std::size(kFaults))];
  const int n = 2 + static_cast<int>(below(random, 7));
  World world(kind, dtype, ReduceOp::sum, n,
              256 + below(random, below(random, 50) == 0 ? 100'000 : 4000), seed);
  world.fill([&](std::size_t r, std::size_t count) {
    return elements(dtype, Data::normal, r, count, seed);
  });
  world.begin();
  world.run();
  const std::size_t victim = world.someone();
  if (world.out[victim].size() < 256) return;
  std::size_t culprit = victim;
  const Memory before = world.out[victim];
  if (fault == Fault::dropped || fault == Fault::doubled) {
    if (kind != Collective::all_reduce && kind != Collective::reduce &&
        kind != Collective::reduce_scatter)
      return;
    culprit = below(random, world.n());
    std::vector<std::size_t> ranks = world.all_ranks();
    if (fault == Fault::doubled)
      ranks.push_back(culprit);
    else
      ranks.erase(ranks.begin() + static_cast<std::ptrdiff_t>(culprit));
    world.replace(victim, world.sum(victim, ranks));
  } else {
    const bool has_gaps = !has_equal_blocks(kind);  // where nothing is checked
    if (has_gaps) return;
    plant(fault, world.out[victim], world.element(), random);
  }
  if (world.out[victim] == before) return;
  ++tally.planted;
  const auto said = world.end();
  const std::string name = rank_name(Rank{static_cast<int>(victim)});
  const std::string message(said[victim].message());
  if (said[victim].ok()) {
    tally.missed += fmt::format("seed {}, fault {}, {} of {}, {} ranks\n", seed,
                                static_cast<int>(fault), anyccl::name(kind), name_of(dtype), n);
    return;
  }
  ++tally.found;
  const bool sums = fault == Fault::dropped || fault == Fault::doubled;
  const std::string blame = fault == Fault::dropped ? "missing" : "twice";
  const bool is_named =
      message.find(name) != std::string::npos &&
      message.find("(operation 4711)") != std::string::npos &&
      (!sums || (message.find(rank_name(Rank{static_cast<int>(culprit)})) != std::string::npos &&
                 message.find(blame) != std::string::npos));
  if (is_named)
    ++tally.named;
  else
    tally.missed += fmt::format("seed {}, not named: {}\n", seed, message);
  // Where all have the same result, all see that one has another.
  const bool all_see = kind == Collective::all_reduce || kind == Collective::all_gather ||
                       kind == Collective::broadcast;
  for (const Status& one : said) EXPECT_FALSE(all_see && one.ok()) << "seed " << seed;
}

TEST(Verification, finds_planted_faults_and_names_the_rank) {
  Tally tally;
  const std::uint64_t cases = cases_of(300, 2000, 200'000);
  for (std::uint64_t seed = 1; seed <= cases; ++seed) try_fault(seed, tally);
  EXPECT_GT(tally.planted, cases / 3);
  EXPECT_EQ(tally.found, tally.planted) << tally.missed.substr(0, 3000);
  EXPECT_GE(tally.named * 100, tally.planted * 99) << tally.missed.substr(0, 3000);
  RecordProperty("planted", std::to_string(tally.planted));
  std::printf("%llu faults planted, %llu found, %llu named\n",
              static_cast<unsigned long long>(tally.planted),
              static_cast<unsigned long long>(tally.found),
              static_cast<unsigned long long>(tally.named));
}

TEST(Verification, says_which_elements_are_off_and_by_how_much) {
  World world(Collective::all_reduce, DType::f32, ReduceOp::sum, 4, 150'000, 7);
  world.fill([&](std::size_t r, std::size_t count) {
    return elements(DType::f32, Data::normal, r, count, 7);
  });
  world.begin();
  world.run();
  const Memory right = world.out[2];
  const Memory without = world.sum(2, {0, 1, 2});
  std::copy(without.begin() + 4 * 65536, without.begin() + 4 * 131072,
            world.out[2].begin() + 4 * 65536);
  const auto said = world.end();
  for (const char* word :
       {"all_reduce of 150000 f32, sum (operation 4711)",
        "elements 65536..131071 at rank 2 (host h2, pid 102)", "are off by",
        "where rounding explains", "the contribution of rank 3 (host h3, pid 103) is missing"})
    EXPECT_NE(said[2].message().find(word), std::string::npos) << word << ": " << said[2].message();
  EXPECT_EQ(said[2].code(), Code::internal);
  EXPECT_NE(said[0].message().find("rank 2 (host h2, pid 102) has another result"),
            std::string::npos)
      << said[0].message();
}

TEST(Verification, wants_infinities_where_contributions_have_them_and_nowhere_else) {
  for (const bool has_one : {false, true}) {
    World world(Collective::all_reduce, DType::f32, ReduceOp::sum, 3, 1000, 7);
    world.fill([&](std::size_t r, std::size_t count) {
      return elements(DType::f32, Data::normal, r, count, 7);
    });
    const float infinity = HUGE_VALF;
    if (has_one) std::memcpy(world.in[1].data() + 4 * 77, &infinity, 4);
    world.begin();
    world.run();
    const float wrong = has_one ? 1.0F : infinity;
    std::memcpy(world.out[0].data() + 4 * 77, &wrong, 4);
    const Status said = world.end()[0];
    EXPECT_NE(said.message().find(has_one ? "the contribution of rank 1 (host h1"
                                          : "are infinite or no numbers"),
              std::string::npos)
        << said.message();
  }
}

TEST(Verification, of_f64_is_not_alarmed_by_squares_that_overflow) {
  for (const bool is_right : {true, false}) {
    World world(Collective::all_reduce, DType::f64, ReduceOp::sum, 4, 100, 7);
    world.fill([](std::size_t, std::size_t count) {
      const std::vector<double> x(count, 1e154);  // whose squares do not, but those of the sum do
      Memory memory(8 * count);
      std::memcpy(memory.data(), x.data(), memory.size());
      return memory;
    });
    world.begin();
    world.run();
    const double wrong = 5e154;
    for (std::size_t r = 0; r < 4 && !is_right; ++r)
      std::memcpy(world.out[r].data() + 8 * 42, &wrong, sizeof wrong);
    for (const Status& said : world.end()) EXPECT_EQ(said.ok(), is_right) << said.message();
  }
}

TEST(Verification, sees_a_maximum_that_lost_one_rank) {
  World world(Collective::all_reduce, DType::i32, ReduceOp::max, 3, 1000, 7);
  world.fill([&](std::size_t r, std::size_t count) {
    return elements(DType::i32, Data::normal, r, count, 7);
  });
  world.begin();
  world.run();
  world.replace(1, world.sum(1, {0, 2}));
  EXPECT_NE(world.end()[1].message().find("does not take in its own contribution"),
            std::string::npos);
}

TEST(Verification, has_no_check_for_products) {
  Call call;
  call.op = ReduceOp::prod;
  const Status said = method_of(call, call.dtype, call.dtype, nullptr, 4).status();
  EXPECT_EQ(said.code(), Code::invalid_usage);
  for (const char* word : {"prod", "ANYCCL_VERIFY", "config->verify"})
    EXPECT_NE(said.message().find(word), std::string::npos) << said.message();
}

TEST(Hasher, tells_lengths_places_and_bits_apart) {
  const Hasher hash(42);
  Memory memory(5000);
  std::set<std::uint64_t> seen;
  const auto hash_of = [&](std::size_t bytes) {
    return hash(reinterpret_cast<const std::byte*>(memory.data()), bytes);
  };
  for (std::size_t bytes = 0; bytes <= 2100; ++bytes) seen.insert(hash_of(bytes));
  for (std::size_t bit = 0; bit < 8 * memory.size(); bit += 7) {
    memory[bit / 8] ^= static_cast<unsigned char>(1U << (bit % 8));
    seen.insert(hash_of(memory.size()));
    memory[bit / 8] ^= static_cast<unsigned char>(1U << (bit % 8));
  }
  EXPECT_EQ(seen.size(), 2101U + (8 * memory.size() + 6) / 7);
}

}  // namespace
}  // namespace anyccl::test
