// Codecs as programs use them: payloads, their sums, and bad arguments.

#include <cstring>
#include <numeric>

#include "support/coded_reference.hpp"
#include "support/ranks.hpp"

namespace anyccl::test {
namespace {

using Bytes = std::vector<std::byte>;

TEST(CodecPayloads, of_several_ranks_are_added_up_and_encoded_again) {
  for (const CodecName codec : kEveryCodec) {
    std::vector<Floats> x;
    std::vector<Bytes> payloads;
    std::vector<std::span<const std::byte>> views;
    std::vector<const void*> at;
    for (int r = 0; r < 3; ++r) {
      x.push_back(vector_of(r, 1000));
      payloads.push_back(encoded(codec, x.back()));
    }
    for (const Bytes& payload : payloads) views.emplace_back(payload), at.push_back(payload.data());
    Floats sum(1000), again(1000);
    ASSERT_OK(codec::decode(codec, views, sum));
    Bytes coded(payloads[0].size());
    ASSERT_EQ(anycclCodecSum(static_cast<anycclCodec_t>(codec), at.data(), 3, coded.size(),
                             coded.data(), 1000),
              anycclSuccess);
    EXPECT_EQ(coded, encoded(codec, sum));
    ASSERT_OK(codec::decode(codec, coded, again));
    for (std::size_t i = 0; i < sum.size(); ++i) EXPECT_NEAR(again[i], sum[i], 12.0F);
  }
}

TEST(CodecPayloads, have_names_and_sizes) {
  EXPECT_EQ(*codec::named("int8"), CodecName::int8);
  EXPECT_EQ(*codec::bytes(CodecName::int8, 1000), 1024U + 64);
  EXPECT_EQ(*codec::bytes(CodecName::int4, 0), 0U);
}

TEST(CodecPayloads, of_bad_arguments_are_refused) {
  const auto expect = [](const Status& status, Code code, const std::string& words) {
    EXPECT_EQ(status.code(), code);
    EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
  };
  Floats x(100), y(100);
  Bytes payload(*codec::bytes(CodecName::int8, 100)), shorter(payload.size() - 1);
  std::vector<int> integers(100);
  expect(codec::encode(CodecName::int8, x, shorter), Code::invalid_argument,
         "bytes is 191, but 100 elements with codec int8 have 192");
  expect(codec::encode(CodecName::int8, integers, payload), Code::unsupported,
         "datatype 2 with codec int8");
  expect(codec::encode(CodecName::int8, View(nullptr, 100, DType::f32), payload),
         Code::invalid_argument, "x is NULL");
  expect(codec::encode(static_cast<CodecName>(7), x, payload), Code::unsupported, "codec 7");
  expect(codec::encode(CodecName::int8, View(payload.data(), 10, DType::f32), std::span(payload)),
         Code::invalid_argument, "overlap");
  expect(codec::decode(CodecName::int8, shorter, y), Code::invalid_argument, "bytes is 191");
  expect(codec::decode(CodecName::int8, std::span<const std::span<const std::byte>>(), View()),
         Code::invalid_argument, "sources is 0");
  const std::span<const std::byte> different[] = {payload, shorter};
  expect(codec::decode(CodecName::int8, different, y), Code::invalid_argument, "192 and 191");
  expect(codec::named("int3").status(), Code::unsupported, "codec int3: there are bf16");
  const void* const none[] = {nullptr};
  EXPECT_EQ(
      anycclCodecEncode(anycclCodecInt8, x.data(), 100, anycclFloat32, nullptr, payload.size()),
      anycclInvalidArgument);
  EXPECT_EQ(
      anycclCodecDecode(anycclCodecInt8, none, 1, payload.size(), y.data(), 100, anycclFloat32),
      anycclInvalidArgument);
  EXPECT_EQ(anycclCodecSum(anycclCodecInt8, nullptr, 1, payload.size(), payload.data(), 100),
            anycclInvalidArgument);
  EXPECT_EQ(anycclCodecBytes(anycclCodecInt8, ~std::size_t{0}, nullptr), anycclInvalidArgument);
  EXPECT_EQ(anycclCodecFromName(nullptr, nullptr), anycclInvalidArgument);
  EXPECT_EQ(anycclCodedAllReduce(x.data(), x.data(), 1, anycclFloat32, anycclSum, nullptr),
            anycclInvalidArgument);
  EXPECT_EQ(anycclCodedDestroy(nullptr), anycclSuccess);
  anycclCoded_t coded = nullptr;
  EXPECT_NE(anycclCodedCreate(&coded, anycclCodecInt8, 0, 0, nullptr), anycclSuccess);
  EXPECT_EQ(coded, nullptr);
}

}  // namespace
}  // namespace anyccl::test
