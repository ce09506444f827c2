// Block codecs, on every instruction set that this CPU has, against their definitions.

#include <gtest/gtest.h>

#include <cfenv>
#include <ostream>
#include <string>
#include <tuple>

#include "codec_reference.hpp"
#include "support/effort.hpp"

namespace anyccl::test {
namespace {

constexpr std::uint64_t kSeed = 20261126;
constexpr std::size_t kCounts[] = {0, 1, 31, 32, 33, 63, 127, 128, 129, 1000, 1024, 1025, 5000};

class Codecs : public testing::TestWithParam<std::size_t> {
 protected:
  const CodecKernels& kernels() const { return kernels_of(GetParam()); }
  static const CodecKernels& kernels_of(std::size_t isa) {
    static const auto isas = supported_isas();
    return *isas[isa].kernels->codecs;
  }
  static std::size_t isas() { return supported_isas().size(); }
  std::mt19937_64 random_{kSeed};
};

Payload random_payload(Codec codec, std::size_t count, std::mt19937_64& random) {
  Payload payload(payload_bytes(codec, count));
  for (std::byte& byte : payload) byte = static_cast<std::byte>(random());
  return payload;
}

/// The blocks of `y` are those of `x`, each element within the bound of its codec.
void expect_within_bound(Codec codec, const Floats& x, const Floats& y) {
  const std::size_t block = info_of(codec).block;
  for (std::size_t first = 0; first < x.size(); first += block) {
    const std::size_t end = std::min(first + block, x.size());
    double most = 0;
    for (std::size_t i = first; i < end; ++i)
      most = std::isfinite(x[i]) ? std::max(most, std::abs(static_cast<double>(x[i]))) : INFINITY;
    for (std::size_t i = first; i < end; ++i) {
      const double off = std::abs(static_cast<double>(y[i]) - static_cast<double>(x[i]));
      ASSERT_LE(off, bound_of(codec, most, static_cast<double>(x[i])))
          << info_of(codec).name << ": " << x[i] << " became " << y[i] << " beside " << most;
    }
  }
}

TEST_P(Codecs, each_element_is_within_the_bound_of_its_block) {
  const std::size_t blocks = effort<std::size_t>(4000, 60000, 1000000);
  constexpr std::size_t kTogether = 1000;
  for (const Codec codec : kAllCodecs)
    for (std::size_t done = 0; done < blocks; done += kTogether) {
      const std::size_t count = kTogether * info_of(codec).block - random_() % 3;
      const auto kind = std::array{Blocks::normal, Blocks::wide, Blocks::denormal, Blocks::huge,
                                   Blocks::equal}[random_() % 5];
      if (codec == Codec::f16 && (kind == Blocks::wide || kind == Blocks::huge)) continue;
      const Floats x = make(kind, count, random_);
      const Floats y = decoded(kernels(), codec, {encoded(kernels(), codec, x)}, count);
      ASSERT_NO_FATAL_FAILURE(expect_within_bound(codec, x, y));
    }
}

TEST_P(Codecs, a_code_is_the_nearest_one_and_ties_go_to_even) {
  for (const Codec codec : {Codec::mxint8, Codec::mxfp8_e4m3, Codec::mxfp8_e5m2})
    for (const Blocks kind : {Blocks::normal, Blocks::wide, Blocks::denormal}) {
      const Floats x = make(kind, 3200, random_);
      const Payload payload = encoded(kernels(), codec, x);
      const auto scales = std::span(payload).subspan(codes_bytes(codec, x.size()));
      const Floats y = decode_slowly(codec, payload, x.size());
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double scale = scale_at(codec, scales, i / 32), wanted = static_cast<double>(x[i]);
        double best = INFINITY;
        for (Bits code = 0; code < 256; ++code) {
          const double one = code_value(codec, code) * scale;
          if (std::isfinite(one) && !(codec == Codec::mxint8 && code == 128))
            best = std::min(best, std::abs(one - wanted));
        }
        ASSERT_EQ(std::abs(static_cast<double>(y[i]) - wanted), best)
            << info_of(codec).name << ": " << x[i] << " became " << y[i];
      }
    }
  // 1 makes the scales 2^0 and 2^-8; the others lie between two codes.
  Floats x(32, 0.0F);
  x[0] = 1, x[1] = 0.5F / 64, x[2] = 1.5F / 64, x[3] = -2.5F / 64;
  EXPECT_EQ(decoded(kernels(), Codec::mxint8, {encoded(kernels(), Codec::mxint8, x)}, 4),
            (Floats{1, 0, 2.0F / 64, -2.0F / 64}));
  x[1] = 1.0F / 2 + 1.0F / 32, x[2] = 1.0F / 2 + 3.0F / 32, x[3] = -0x1.8p-17F;
  EXPECT_EQ(decoded(kernels(), Codec::mxfp8_e4m3, {encoded(kernels(), Codec::mxfp8_e4m3, x)}, 4),
            (Floats{1, 0.5F, 0.625F, -0x1p-16F}));
}

TEST_P(Codecs, scales_of_mx_are_the_exponent_of_the_largest_without_that_of_the_codec) {
  const std::tuple<Codec, int> kTops[] = {
      {Codec::mxint8, 0}, {Codec::mxfp8_e4m3, 8}, {Codec::mxfp8_e5m2, 15}};
  for (const auto& [codec, top] : kTops)
    for (const float most : {1.0F, 1.999F, 2.0F, -3e38F, 0x1p-119F, 0x1p-126F, 0x1p-130F, 0.0F}) {
      const Payload payload = encoded(kernels(), codec, Floats(32, most));
      const int exponent = most == 0 ? -127 : std::max(std::ilogb(most), -127);
      ASSERT_EQ(static_cast<int>(payload[codes_bytes(codec, 32)]),
                std::max(exponent + 127 - top, 0))
          << info_of(codec).name << " of " << most;
    }
}

TEST_P(Codecs, integer_codes_use_their_whole_range_and_no_more) {
  for (const Codec codec : {Codec::int8, Codec::int4})
    for (int round = 0; round < effort(200, 3000, 50000); ++round) {
      const std::size_t count = info_of(codec).block;
      const Floats x = make(Blocks::wide, count, random_);
      const Payload payload = encoded(kernels(), codec, x);
      int most = 0;
      for (std::size_t i = 0; i < count; ++i)
        most = std::max(most,
                        std::abs(static_cast<int>(code_value(codec, code_at(codec, payload, i)))));
      ASSERT_LE(most, most_of(codec));
      ASSERT_GE(most, most_of(codec) - 1);
    }
}

TEST_P(Codecs, decoding_rounds_nothing) {
  // All scales with all codes: the product in f64, which is exact, is a number of f32.
  for (const Codec codec : {Codec::int8, Codec::int4, Codec::mxint8, Codec::mxfp8_e4m3}) {
    const CodecInfo& info = info_of(codec);
    const std::size_t scales = info.scale_bytes == 2 ? 65536 : 256;
    const std::size_t step = effort<std::size_t>(17, 3, 1);
    for (std::size_t scale = 0; scale < scales; scale += scales == 256 ? 1 : step) {
      const std::size_t count = 256 / info.block * info.block;
      Payload payload(payload_bytes(codec, count));
      for (std::size_t i = 0; i < codes_bytes(codec, count); ++i)
        payload[i] = static_cast<std::byte>(i);
      for (std::size_t b = 0; b < count / info.block; ++b)
        std::memcpy(&payload[codes_bytes(codec, count) + b * info.scale_bytes], &scale,
                    info.scale_bytes);
      const Floats y = decoded(kernels(), codec, {payload}, count);
      ASSERT_TRUE(same(y, decode_slowly(codec, payload, count)));
      const double s = scale_at(codec, std::span(payload).subspan(codes_bytes(codec, count)), 0);
      if (!std::isfinite(s) || std::abs(s) > 0x1p119 || (s != 0 && std::abs(s) < 0x1p-126))
        continue;
      for (std::size_t i = 0; i < count; ++i) {
        const double exact = code_value(codec, code_at(codec, payload, i)) * s;
        ASSERT_TRUE(!std::isfinite(exact) || static_cast<double>(y[i]) == exact) << exact;
      }
    }
  }
}

TEST_P(Codecs, infinities_and_nans_make_their_block_nan_and_no_other) {
  for (const Codec codec : kAllCodecs) {
    const std::size_t block = info_of(codec).block, count = 3 * block;
    const bool has_scale = info_of(codec).scale_bytes > 0;
    const Floats clean =
        decoded(kernels(), codec, {encoded(kernels(), codec, Floats(count, 1.0F))}, count);
    for (const float bad : {INFINITY, -INFINITY, std::bit_cast<float>(0xff812345)}) {
      Floats x(count, 1.0F);
      x[block + 5] = bad;
      const Floats y = decoded(kernels(), codec, {encoded(kernels(), codec, x)}, count);
      for (std::size_t i = 0; i < count; ++i) {
        const bool is_nan = has_scale && i / block == 1;
        const float wanted = is_nan ? std::nanf("") : i == block + 5 ? canonical(bad) : clean[i];
        ASSERT_EQ(bits_of(y[i]), bits_of(wanted)) << info_of(codec).name << ", " << i;
      }
    }
  }
}

TEST_P(Codecs, zeros_and_what_is_too_small_become_zero) {
  for (const Codec codec : {Codec::int8, Codec::int4})
    for (const float small : {0.0F, -0.0F, 0x1.fffffep-120F, -0x1p-149F}) {
      const Floats y =
          decoded(kernels(), codec, {encoded(kernels(), codec, Floats(129, small))}, 129);
      for (const float one : y) ASSERT_EQ(bits_of(one), 0U);
    }
  const Floats least(128, 0x1p-119F);
  for (const float one :
       decoded(kernels(), Codec::int8, {encoded(kernels(), Codec::int8, least)}, 128))
    ASSERT_NEAR(one, 0x1p-119F, 0x1p-126F);
}

TEST_P(Codecs, the_last_block_may_be_short) {
  for (const Codec codec : kAllCodecs)
    for (const std::size_t count : kCounts) {
      const Floats x = make(Blocks::normal, count, random_);
      Floats padded = x;
      padded.resize((count + 127) / 128 * 128);
      const Payload whole = encoded(kernels(), codec, padded);
      const Floats expected = decoded(kernels(), codec, {whole}, padded.size());
      const Floats y = decoded(kernels(), codec, {encoded(kernels(), codec, x)}, count);
      ASSERT_TRUE(same(y, std::span(expected).first(count))) << info_of(codec).name << " " << count;
    }
}

TEST_P(Codecs, sums_are_folded_by_the_aligned_tree) {
  for (const Codec codec : kAllCodecs)
    for (const std::size_t sources : {1U, 2U, 3U, 4U, 5U, 6U, 7U, 8U, 9U, 12U, 13U, 17U, 33U}) {
      const std::size_t count = kCounts[random_() % std::size(kCounts)];
      std::vector<Payload> payloads;
      std::vector<Floats> each;
      for (std::size_t k = 0; k < sources; ++k) {
        const bool is_hostile = random_() % 3 == 0;
        payloads.push_back(is_hostile
                               ? random_payload(codec, count, random_)
                               : encoded(kernels(), codec, make(Blocks::wide, count, random_)));
        each.push_back(decode_slowly(codec, payloads.back(), count));
      }
      Floats expected(count);
      for (std::size_t i = 0; i < count; ++i) expected[i] = tree(each, i, 0, sources);
      ASSERT_TRUE(same(decoded(kernels(), codec, payloads, count), expected))
          << info_of(codec).name << ", " << sources << " sources of " << count;
      for (float& one : expected) one = canonical(one / 3);
      ASSERT_TRUE(same(decoded(kernels(), codec, payloads, count, 3), expected));
      std::vector<const std::byte*> at;
      for (const Payload& payload : payloads) at.push_back(payload.data());
      Payload again(payload_bytes(codec, count));
      recode(kernels(), codec, at, count, again.data(), 3);
      if (count % 128 != 0) continue;  // behind the end of a hostile block are no zeros
      ASSERT_EQ(again, encoded(kernels(), codec, expected)) << info_of(codec).name;
    }
}

TEST_P(Codecs, all_instruction_sets_give_the_same_bits) {
  for (const Codec codec : kAllCodecs)
    for (const Blocks kind : kBlockKinds) {
      const std::size_t count = 5000 + random_() % 300;
      const Floats x = make(kind, count, random_);
      const Payload mine = encoded(kernels(), codec, x),
                    any = random_payload(codec, count, random_);
      const CodecKernels& other = kernels_of(isas() - 1);
      ASSERT_EQ(mine, encoded(other, codec, x)) << info_of(codec).name;
      ASSERT_TRUE(same(decoded(kernels(), codec, {mine, any}, count),
                       decoded(other, codec, {mine, any}, count)));
    }
}

TEST_P(Codecs, any_bytes_are_decoded_as_they_are_defined) {
  for (const Codec codec : kAllCodecs)
    for (int round = 0; round < effort(20, 200, 5000); ++round) {
      const std::size_t count = kCounts[random_() % std::size(kCounts)];
      const Payload payload = random_payload(codec, count, random_);
      ASSERT_TRUE(
          same(decoded(kernels(), codec, {payload}, count), decode_slowly(codec, payload, count)))
          << info_of(codec).name;
    }
}

TEST_P(Codecs, types_of_16_bits_are_those_numbers) {
  for (const DType type : {DType::bf16, DType::f16}) {
    std::vector<std::uint16_t> all(65536), back(all.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
    Floats x(all.size());
    for (std::size_t i = 0; i < all.size(); ++i) x[i] = decoded_of(type, all[i]);
    const auto codec = type == DType::bf16 ? Codec::bf16 : Codec::f16;
    for (const Codec used : {codec, Codec::int8}) {
      Payload payload(payload_bytes(used, all.size()));
      encode(kernels(), used, {all.data(), all.size(), type}, payload.data());
      ASSERT_EQ(payload, encoded(kernels(), used, x));
      const Floats y = decoded(kernels(), used, {payload}, all.size());
      const std::byte* const at[] = {payload.data()};
      decode(kernels(), used, at, {back.data(), back.size(), type});
      for (std::size_t i = 0; i < all.size(); ++i) {
        const bool is_nan = std::isnan(y[i]);
        ASSERT_TRUE(used != codec || bits_of(y[i]) == bits_of(x[i])) << i;
        ASSERT_EQ(back[i], is_nan ? format_of(type).nan
                                  : nearest(format_of(type), static_cast<double>(y[i])))
            << i;
      }
    }
  }
}

TEST_P(Codecs, vectors_may_have_any_alignment) {
  Payload memory(4 * 3000 + 64);
  const Floats x = make(Blocks::normal, 3000, random_);
  const Payload expected = encoded(kernels(), Codec::int8, x);
  const Floats y = decoded(kernels(), Codec::int8, {expected}, x.size());
  for (std::size_t shift = 0; shift < 4; ++shift) {
    std::memcpy(memory.data() + shift, x.data(), 4 * x.size());
    Payload payload(expected.size());
    encode(kernels(), Codec::int8, {memory.data() + shift, x.size()}, payload.data());
    ASSERT_EQ(payload, expected);
    const std::byte* const at[] = {payload.data()};
    decode(kernels(), Codec::int8, at, {memory.data() + shift, x.size()});
    ASSERT_EQ(std::memcmp(memory.data() + shift, y.data(), 4 * x.size()), 0);
  }
}

TEST_P(Codecs, the_mode_of_the_caller_changes_nothing) {
  for (const Codec codec : kAllCodecs) {
    const Floats x = make(Blocks::wide, 3000, random_);
    const Payload expected = encoded(kernels(), codec, x);
    const Floats sum = decoded(kernels(), codec, {expected, expected}, x.size(), 3);
    std::fesetround(FE_UPWARD);
    const Payload got = encoded(kernels(), codec, x);
    const Floats other = decoded(kernels(), codec, {got, got}, x.size(), 3);
    std::fesetround(FE_TONEAREST);
    EXPECT_EQ(got, expected);
    EXPECT_TRUE(same(other, sum));
  }
}

TEST(CodecPayloads, have_codes_and_scales_at_multiples_of_64_bytes) {
  EXPECT_EQ(payload_bytes(Codec::int8, 0), 0U);
  EXPECT_EQ(payload_bytes(Codec::int8, 1), 128U + 64);
  EXPECT_EQ(payload_bytes(Codec::int8, 1 << 20), (1U << 20) + (1U << 20) / 128 * 2);
  EXPECT_EQ(payload_bytes(Codec::mxint8, 1 << 20), (1U << 20) + (1U << 20) / 32);
  EXPECT_EQ(payload_bytes(Codec::int4, 1 << 20), (1U << 19) + (1U << 20) / 32 * 2);
  EXPECT_EQ(payload_bytes(Codec::bf16, 33), 128U);
  EXPECT_EQ(codes_bytes(Codec::int4, 33), 64U);
}

TEST(CodecPayloads, of_what_is_no_codec_are_refused_by_name) {
  const auto has = [](const Status& status, std::string_view words) {
    EXPECT_EQ(status.code(), Code::unsupported);
    return testing::AssertionResult(status.message().find(words) != std::string::npos)
           << status.message();
  };
  EXPECT_TRUE(has(codec_named("int5").status(), "codec int5: there are bf16, f16, int8, mxint8"));
  EXPECT_TRUE(has(codec_of(7).status(), "codec 7: there are 0 to 6"));
  EXPECT_TRUE(has(codec_of(-1).status(), "codec -1"));
  EXPECT_TRUE(has(check_codec_type(Codec::int8, DType::i32), "datatype 2 with codec int8"));
  for (const Codec codec : kAllCodecs) {
    EXPECT_EQ(*codec_named(info_of(codec).name), codec);
    EXPECT_EQ(*codec_of(static_cast<int>(codec)), codec);
  }
}

INSTANTIATE_TEST_SUITE_P(, Codecs, testing::Range(std::size_t{0}, supported_isas().size()),
                         [](const auto& at) {
                           std::string name(supported_isas()[at.param].name);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace anyccl::test
