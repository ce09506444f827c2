// Sparse vectors, on every instruction set that this CPU has, against the definition.

#include <gtest/gtest.h>

#include <cfenv>
#include <limits>
#include <ostream>

#include "sparse_reference.hpp"
#include "support/effort.hpp"

namespace anyccl::test {
namespace {

constexpr std::uint64_t kSeed = 20261125;
constexpr std::size_t kCounts[] = {0,    1,    2,    15,    63,    64,    65,
                                   1000, 8192, 8193, 65535, 65536, 65537, 140001};
constexpr DType kValues[] = {DType::f32, DType::bf16, DType::f16};

class Sparse : public testing::TestWithParam<std::size_t> {
 protected:
  const SparseKernels& kernels() const {
    static const auto isas = supported_isas();
    return isas[GetParam()].kernels->sparse;
  }
  /// Whether to try one more case of so many elements: of the large ones a sample, but for the long
  /// form.
  bool is_worth(std::size_t count) {
    return count < effort(1000U, 10000U, 10000U) || random_() % effort(16U, 2U, 1U) == 0;
  }
  std::mt19937_64 random_{kSeed};
};

std::vector<std::size_t> shares_of(std::size_t count) {
  std::vector<std::size_t> shares = {0,          1,         count / 100,        count / 16,
                                     count / 15, count / 2, count - count / 40, count};
  std::erase_if(shares, [&](std::size_t k) { return k > count; });
  return shares;
}

/// The moved elements are as expected: these elements are in the payload, rounded, and what is left
/// adds up.
void expect_moved(const SparseKernels& kernels, const Floats& before,
                  const std::vector<std::size_t>& places, const anycclSparseCut_t& cut,
                  DType values) {
  Floats v = before, u(before.size(), 3.0F), sum(before.size(), -0.0F);
  const auto payload = packed(kernels, v, &u, cut, values);
  ASSERT_TRUE(payload.ok()) << payload.status().message();
  const Status added = sparse_add(kernels, *payload, vector_of(sum));
  ASSERT_TRUE(added.ok()) << added.message();
  std::size_t next = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const bool taken = next < places.size() && places[next] == i;
    next += taken ? 1 : 0;
    const float sent = taken ? rounded(values, before[i]) : -0.0F;
    const float left = !taken ? before[i] : std::isfinite(sent) ? before[i] - sent : 0.0F;
    ASSERT_EQ(bits_of(v[i]), bits_of(left)) << "left at " << i << " of " << before[i];
    ASSERT_EQ(bits_of(sum[i]), std::isnan(sent) ? 0x7fc00000 : bits_of(sent))
        << "sent at " << i << " of " << before[i];
    ASSERT_EQ(u[i], taken ? 0.0F : 3.0F) << i;
  }
}

TEST_P(Sparse, top_k_takes_exactly_the_largest) {
  for (const std::size_t count : kCounts)
    for (const Kind kind : kKinds) {
      if (!is_worth(count)) continue;
      Floats x = make(kind, count, random_);
      const std::vector<std::size_t> order = by_magnitude(x);
      for (const std::size_t k : shares_of(count)) {
        SCOPED_TRACE(testing::Message() << k << " of " << count << ", kind " << int(kind));
        const auto cut = sparse_top_k(kernels(), vector_of(x), k);
        ASSERT_TRUE(cut.ok());
        ASSERT_EQ(cut->entries, k);
        const DType values = kValues[random_() % 3];
        ASSERT_NO_FATAL_FAILURE(expect_moved(kernels(), x, first_of(order, k), *cut, values));
      }
    }
}

TEST_P(Sparse, a_threshold_takes_all_that_reach_it) {
  for (const std::size_t count : kCounts)
    for (const Kind kind : kKinds) {
      if (!is_worth(count)) continue;
      Floats x = make(kind, count, random_);
      for (const std::size_t keep : shares_of(count)) {
        SCOPED_TRACE(testing::Message() << keep << " of " << count << ", kind " << int(kind));
        const auto cut = sparse_threshold(kernels(), vector_of(x), keep);
        ASSERT_TRUE(cut.ok());
        std::size_t ties = cut->ties;
        std::vector<std::size_t> places;
        for (std::size_t i = 0; i < count; ++i)
          if (magnitude_of(x[i]) > cut->least || (magnitude_of(x[i]) == cut->least && ties > 0)) {
            ties -= magnitude_of(x[i]) == cut->least ? 1 : 0;
            ASSERT_NE(magnitude_of(x[i]), 0U) << "a zero travels";
            places.push_back(i);
          }
        ASSERT_EQ(places.size(), cut->entries);
        ASSERT_NO_FATAL_FAILURE(expect_moved(kernels(), x, places, *cut, kValues[random_() % 3]));
      }
    }
}

TEST_P(Sparse, a_threshold_takes_about_as_many_as_wanted) {
  Floats x = make(Kind::normal, 1 << 20, random_);
  for (const std::size_t keep : {x.size() / 1000, x.size() / 100, x.size() / 10}) {
    const auto cut = sparse_threshold(kernels(), vector_of(x), keep);
    ASSERT_TRUE(cut.ok());
    // The sample has keep / 61 of them, with a deviation of the root of that.
    const double wanted = static_cast<double>(keep), deviation = std::sqrt(61 * wanted);
    EXPECT_NEAR(static_cast<double>(cut->entries), wanted, 5 * deviation) << keep;
  }
  Floats equal = make(Kind::equal, 100000, random_);
  EXPECT_EQ(sparse_threshold(kernels(), vector_of(equal), 1234)->entries, 1234U);
}

TEST_P(Sparse, every_value_rounds_to_the_nearest_finite_one) {
  for (const DType values : kValues) {
    Floats x = make(Kind::special, 30000, random_);
    for (const float edge : {65504.0F, 65519.9F, 65520.0F, 1e6F, std::numeric_limits<float>::max(),
                             0x1p-24F, 0x1p-25F, 0x1.8p-25F, 0x1p-14F, 0x1.fffp-15F, 1e-40F})
      x.insert(x.end(), {edge, -edge});
    std::vector<std::size_t> all(x.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    const auto cut = sparse_top_k(kernels(), vector_of(x), x.size());
    ASSERT_NO_FATAL_FAILURE(expect_moved(kernels(), x, all, *cut, values)) << int(values);
  }
}

TEST_P(Sparse, a_payload_is_as_short_as_its_container) {
  constexpr std::size_t kHead = 12 + 4;
  const auto bytes = [&](std::size_t count, std::size_t entries, DType values) {
    Floats x = make(Kind::sorted, count, random_);
    const auto cut = sparse_top_k(kernels(), vector_of(x), entries);
    return packed(kernels(), x, nullptr, *cut, values)->size();
  };
  EXPECT_EQ(bytes(65536, 0, DType::f32), kHead);
  EXPECT_EQ(bytes(65536, 4096, DType::f32), kHead + 4096 * 6);         // places
  EXPECT_EQ(bytes(65536, 4097, DType::f32), kHead + 8192 + 4097 * 4);  // a bitmap
  EXPECT_EQ(bytes(65536, 63487, DType::f32), kHead + 8192 + 63487 * 4);
  EXPECT_EQ(bytes(65536, 63488, DType::f32), kHead + 65536 * 4);  // 97 %: all
  EXPECT_EQ(bytes(65536, 4096, DType::bf16), kHead + 4096 * 4);
  EXPECT_EQ(bytes(65536, 61440, DType::f16), kHead + 65536 * 2);
  EXPECT_EQ(bytes(65537, 1, DType::f32), kHead + 4 + 4);  // one element alone: all of its block
  EXPECT_EQ(bytes(1, 1, DType::f32), kHead + 4);
}

TEST_P(Sparse, payloads_have_the_same_bytes_on_every_instruction_set) {
  const auto isas = supported_isas();
  for (const DType values : kValues) {
    const Floats x = make(Kind::special, 70000, random_);
    Floats mine = x, other = x;
    const auto cut = *sparse_top_k(kernels(), vector_of(mine), 5000);
    EXPECT_TRUE(*packed(kernels(), mine, nullptr, cut, values) ==
                *packed(isas.back().kernels->sparse, other, nullptr, cut, values));
    EXPECT_TRUE(same(mine, other));
  }
}

TEST_P(Sparse, the_mode_of_the_caller_changes_nothing) {
  const Floats x = make(Kind::wide, 3000, random_);
  const auto run = [&](Floats& v) {
    Floats u(v.size()), sum = v;
    kernels().momentum(u.data(), v.data(), x.data(), v.size(), 0.9F);
    const auto cut = *sparse_top_k(kernels(), vector_of(v), 1500);
    const Payload payload = *packed(kernels(), v, nullptr, cut, DType::f16);
    EXPECT_TRUE(sparse_add(kernels(), payload, vector_of(sum)).ok());
    v.insert(v.end(), sum.begin(), sum.end());
    return payload;
  };
  Floats plain = x, upwards = x;
  const Payload expected = run(plain);
  std::fesetround(FE_UPWARD);
  const Payload got = run(upwards);
  std::fesetround(FE_TONEAREST);
  EXPECT_TRUE(got == expected);
  EXPECT_TRUE(same(upwards, plain));
}

TEST_P(Sparse, momentum_is_two_roundings) {
  for (const std::size_t count : kCounts) {
    Floats u = make(Kind::normal, count, random_), v = make(Kind::wide, count, random_);
    const Floats g = make(Kind::normal, count, random_), u_before = u, v_before = v;
    kernels().momentum(u.data(), v.data(), g.data(), count, 0.9F);
    for (std::size_t i = 0; i < count; ++i) {
      const float velocity = 0.9F * u_before[i] + g[i];
      ASSERT_EQ(bits_of(u[i]), bits_of(velocity)) << i;
      ASSERT_EQ(bits_of(v[i]), bits_of(v_before[i] + velocity)) << i;
    }
  }
}

TEST_P(Sparse, vectors_may_have_any_alignment) {
  std::vector<std::byte> memory(4 * 1000 + 64);
  for (std::size_t shift = 0; shift < 4; ++shift) {
    auto* const at = reinterpret_cast<float*>(memory.data() + shift);
    Floats x = make(Kind::normal, 1000, random_);
    std::memcpy(static_cast<void*>(at), x.data(), 4000);
    const auto cut = *sparse_top_k(kernels(), {at, 1000}, 100);
    Payload payload(*sparse_bound(1000, 100, DType::f32));
    const auto bytes = sparse_pack(kernels(), {at, 1000}, nullptr, cut, DType::f32, payload);
    ASSERT_TRUE(bytes.ok());
    payload.resize(*bytes);
    EXPECT_TRUE(payload == *packed(kernels(), x, nullptr, cut));
    EXPECT_EQ(std::memcmp(at, x.data(), 4000), 0);
  }
}

/// Adds a payload of any bytes to a vector with more memory around it; returns what came of it.
Status add_hostile(const SparseKernels& kernels, const Payload& payload, std::size_t count) {
  constexpr std::size_t kMargin = 1024;
  Floats memory(count + 2 * kMargin, 1.0F);
  const Floats before = memory;
  Status status = sparse_add(kernels, payload, {memory.data() + kMargin, count});
  EXPECT_TRUE(status.ok() || same(memory, before)) << status.message();
  std::fill_n(memory.begin() + kMargin, count, 1.0F);
  EXPECT_TRUE(same(memory, before)) << "written outside";
  return status;
}

TEST_P(Sparse, damaged_payloads_are_refused_or_stay_inside) {
  int refused = 0, accepted = 0;
  for (int round = 0; round < effort(300, 2000, 100000); ++round) {
    const std::size_t count = kCounts[1 + random_() % (std::size(kCounts) - 1)];
    Floats x = make(Kind::normal, count, random_);
    const auto shares = shares_of(count);
    const auto cut = *sparse_top_k(kernels(), vector_of(x), shares[random_() % shares.size()]);
    Payload payload = *packed(kernels(), x, nullptr, cut, kValues[random_() % 3]);
    for (std::size_t flips = 1 + random_() % 3; flips > 0; --flips) {
      const std::size_t most = random_() % 2 == 0 ? std::size_t{40} : payload.size();
      payload[random_() % std::min(most, payload.size())] ^= std::byte(1 << random_() % 8);
    }
    if (random_() % 4 == 0) {
      payload.resize(random_() % payload.size());
      payload.shrink_to_fit();
    }
    (add_hostile(kernels(), payload, count).ok() ? accepted : refused) += 1;
    ASSERT_FALSE(HasFailure()) << "round " << round;
  }
  EXPECT_GT(refused, accepted / 10);
  EXPECT_GT(accepted, 0);  // values may be any
}

TEST_P(Sparse, errors_say_what_is_wrong) {
  const auto text = [&](const Payload& payload, std::size_t count) {
    const Status status = add_hostile(kernels(), payload, count);
    EXPECT_EQ(status.code(), Code::invalid_argument);
    return std::string(status.message());
  };
  const auto has = [](const std::string& message, const char* words) {
    return testing::AssertionResult(message.find(words) != std::string::npos) << message;
  };
  Floats x = make(Kind::sorted, 100, random_);
  const Payload good = *packed(kernels(), x, nullptr, *sparse_top_k(kernels(), vector_of(x), 4));
  ASSERT_TRUE(add_hostile(kernels(), good, 100).ok());
  EXPECT_TRUE(has(text(good, 101), "of 100 elements, and the vector has 101"));
  EXPECT_TRUE(has(text({}, 100), "has no header"));
  Payload bad = good;
  bad[0] = std::byte{'b'};
  EXPECT_TRUE(has(text(bad, 100), "no sparse payload"));
  bad = good;
  bad.resize(14);
  EXPECT_TRUE(has(text(bad, 100), "block 0 of the sparse payload ends before it"));
  bad = good;
  bad.pop_back();
  EXPECT_TRUE(has(text(bad, 100), "is cut off"));
  bad = good;
  bad[12] = std::byte{101};
  EXPECT_TRUE(has(text(bad, 100), "more entries than elements"));
  // Places 96 97 98 99: the last one comes twice, goes back, and lies beyond.
  for (const std::byte place : {std::byte{98}, std::byte{96}, std::byte{100}}) {
    bad = good;
    bad[16 + 2 * 3] = place;
    EXPECT_TRUE(has(text(bad, 100), "places out of order or beyond its end"));
  }
  bad = good;
  bad[3] = std::byte{1};  // int8
  EXPECT_TRUE(has(text(bad, 100), "no sparse payload"));

  Floats wide = make(Kind::sorted, 100, random_);
  Payload marks = *packed(kernels(), wide, nullptr, *sparse_top_k(kernels(), vector_of(wide), 20));
  ASSERT_TRUE(add_hostile(kernels(), marks, 100).ok());
  for (const std::size_t element :
       {std::size_t{0}, std::size_t{103}}) {  // one more than it says, and beyond
    bad = marks;
    bad[16 + element / 8] |= std::byte(1 << element % 8);
    EXPECT_TRUE(has(text(bad, 100), "places out of order or beyond its end"));
  }
}

TEST_P(Sparse, a_payload_may_be_followed_by_anything) {
  Floats x = make(Kind::normal, 1000, random_), once(1000), again(1000);
  Payload payload = *packed(kernels(), x, nullptr, *sparse_top_k(kernels(), vector_of(x), 10));
  ASSERT_TRUE(sparse_add(kernels(), payload, vector_of(once)).ok());
  payload.resize(payload.size() + 77, std::byte{0xee});
  ASSERT_TRUE(sparse_add(kernels(), payload, vector_of(again)).ok());
  EXPECT_TRUE(same(once, again));
}

TEST_P(Sparse, a_vector_that_has_changed_does_not_overrun_its_payload) {
  Floats x = make(Kind::few, 70000, random_);
  const auto cut = *sparse_top_k(kernels(), vector_of(x), 20);
  Payload payload(*sparse_bound(x.size(), 20, DType::f32));
  payload.shrink_to_fit();
  std::fill(x.begin(), x.end(), 1e9F);
  const auto bytes = sparse_pack(kernels(), vector_of(x), nullptr, cut, DType::f32, payload);
  EXPECT_EQ(bytes.status().code(), Code::invalid_argument);
  EXPECT_EQ(x, Floats(x.size(), 1e9F));
}

INSTANTIATE_TEST_SUITE_P(Isas, Sparse, testing::Range(std::size_t{0}, supported_isas().size()),
                         [](const auto& isa) {
                           std::string name(supported_isas()[isa.param].name);
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace anyccl::test
