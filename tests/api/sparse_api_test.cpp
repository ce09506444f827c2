// Sparse vectors as programs use them: the C++ functions with a communicator, and bad arguments.

#include <cstring>
#include <numeric>

#include "support/ranks.hpp"

namespace anyccl::test {
namespace {

using Bytes = std::vector<std::byte>;

std::vector<float> numbers(int rank, std::size_t count) {
  std::vector<float> x(count);
  for (std::size_t i = 0; i < count; ++i)
    x[i] = static_cast<float>(static_cast<int>(i * 7919 % 1009) - 500 + rank) / 8;
  return x;
}

View bytes_of(Bytes& bytes) {
  return {bytes.data(), bytes.size(), DType::u8};
}

/// The payloads of all ranks, which have `bytes[r]` each, added up.
Status add_all(const Bytes& all, const std::vector<std::uint64_t>& bytes, std::span<float> sum) {
  std::span<const std::byte> left(all);
  for (const std::uint64_t mine : bytes) {
    const Status added = sparse::add(left.first(mine), sum);
    if (!added.ok()) return added;
    left = left.subspan(mine);
  }
  return {};
}

/// Nothing is lost between what ranks had, sent and kept, and all have the same sum.
void expect_complete(Communicator& comm, const std::vector<float>& before,
                     const std::vector<float>& kept, const std::vector<float>& sum) {
  std::vector<float> expected(before.size()), rest(before.size()), rank_0s = sum;
  ASSERT_OK(wait(comm.all_reduce(before, expected, ReduceOp::sum)));
  ASSERT_OK(wait(comm.all_reduce(kept, rest, ReduceOp::sum)));
  for (std::size_t i = 0; i < sum.size(); ++i) ASSERT_EQ(sum[i] + rest[i], expected[i]) << i;
  ASSERT_OK(wait(comm.broadcast(rank_0s, rank_0s, Rank{0})));
  ASSERT_EQ(rank_0s, sum);
}

TEST(SparseVectors, of_equally_many_elements_are_gathered) {
  run_ranks(3, [](Communicator& comm) {
    const std::vector<float> x = numbers(index(comm.rank()), 70000);
    std::vector<float> v = x, sum(x.size());
    const auto cut = sparse::top_k(v, 700);
    ASSERT_OK(cut.status());
    Bytes mine(*sparse::bound(v.size(), 700, DType::bf16)), all(3 * mine.size());
    ASSERT_OK(sparse::pack(v, {}, *cut, mine, DType::bf16).status());
    ASSERT_OK(wait(comm.all_gather(bytes_of(mine), bytes_of(all))));
    ASSERT_OK(add_all(all, std::vector<std::uint64_t>(3, mine.size()), sum));
    expect_complete(comm, x, v, sum);
  });
}

TEST(SparseVectors, of_different_lengths_are_gathered_after_their_lengths) {
  run_ranks(3, [](Communicator& comm) {
    const std::vector<float> x = numbers(index(comm.rank()), 70000);
    std::vector<float> v = x, sum(x.size());
    const auto cut = sparse::threshold(v, 700 + 300 * static_cast<std::size_t>(index(comm.rank())));
    ASSERT_OK(cut.status());
    auto mine = sparse::pack(v, {}, *cut);
    ASSERT_OK(mine.status());
    std::vector<std::uint64_t> bytes(3), my_bytes = {mine->size()};
    ASSERT_OK(wait(comm.all_gather(my_bytes, bytes)));
    const std::vector<std::size_t> counts(bytes.begin(), bytes.end());
    std::vector<std::size_t> places(3);
    std::exclusive_scan(counts.begin(), counts.end(), places.begin(), std::size_t{0});
    Bytes all(places[2] + counts[2]);
    ASSERT_OK(wait(comm.all_gather_v(bytes_of(*mine), bytes_of(all), {counts, places})));
    ASSERT_OK(add_all(all, bytes, sum));
    expect_complete(comm, x, v, sum);
  });
}

/// The words of the refusal of a call of the C interface.
std::string refusal(anycclResult_t result, anycclResult_t code = anycclInvalidArgument) {
  EXPECT_EQ(result, code);
  return anycclGetLastError(nullptr);
}

TEST(SparseVectors, need_sensible_arguments) {
  float x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, u[8] = {}, sum[8] = {};
  std::byte payload[64];
  anycclSparseCut_t cut{};
  std::size_t bytes = 0;
  const auto has = [](const std::string& text, const char* words) {
    return testing::AssertionResult(text.find(words) != std::string::npos) << text;
  };
  EXPECT_TRUE(has(refusal(anycclSparseTopK(nullptr, 8, 1, &cut)), "x is NULL and count is 8"));
  EXPECT_TRUE(has(refusal(anycclSparseTopK(x, 8, 1, nullptr)), "cut is NULL"));
  EXPECT_TRUE(has(refusal(anycclSparseTopK(x, 8, 9, &cut)), "k is 9, but the vector has 8"));
  EXPECT_TRUE(has(refusal(anycclSparseTopK(x, ~std::size_t{0}, 1, &cut)), "is negative or larger"));
  EXPECT_TRUE(has(refusal(anycclSparseThreshold(x, 8, 9, &cut)), "keep is 9"));
  EXPECT_TRUE(has(refusal(anycclSparseBound(8, 9, anycclFloat32, &bytes)), "9 entries of 8"));
  EXPECT_TRUE(has(refusal(anycclSparseBound(8, 1, anycclInt8, &bytes), anycclUnsupported),
                  "float32, bfloat16 or float16"));
  ASSERT_EQ(anycclSparseTopK(x, 8, 2, &cut), anycclSuccess);
  const auto pack = [&](float* v, float* m, void* to, std::size_t room) {
    return anycclSparsePack(v, m, 8, &cut, anycclFloat32, to, room, &bytes);
  };
  EXPECT_TRUE(
      has(refusal(pack(x, u, payload, 16)), "has room for 16 bytes, and 2 entries may take"));
  EXPECT_TRUE(has(refusal(pack(x, x + 4, payload, 64)), "overlap"));
  EXPECT_TRUE(has(refusal(pack(x, nullptr, x, 32)), "overlap"));
  EXPECT_TRUE(has(refusal(pack(x, nullptr, nullptr, 64)), "payload is NULL"));
  ASSERT_EQ(pack(x, nullptr, payload, 64), anycclSuccess);
  EXPECT_TRUE(has(refusal(anycclSparseAdd(payload, bytes, nullptr, 8)), "into is NULL"));
  EXPECT_TRUE(has(refusal(anycclSparseAdd(nullptr, 12, sum, 8)), "payload is NULL"));
  EXPECT_TRUE(has(refusal(anycclSparseAdd(payload, bytes, sum, 7)), "of 8 elements"));
  EXPECT_EQ(anycclSparseAdd(payload, bytes, sum, 8), anycclSuccess);
  EXPECT_EQ(sum[7], 8);
  EXPECT_TRUE(has(refusal(anycclSparseMomentum(u, x, nullptr, 8, 1)), "gradient is NULL"));
  EXPECT_TRUE(has(refusal(anycclSparseMomentum(u, u, x, 8, 1)), "overlap"));
  EXPECT_EQ(anycclSparseMomentum(nullptr, nullptr, nullptr, 0, 1), anycclSuccess);
  EXPECT_EQ(sparse::pack(x, std::span(u).first(4), cut).status().code(), Code::invalid_argument);
  EXPECT_EQ(sparse::momentum(u, x, std::span(sum).first(4), 1).code(), Code::invalid_argument);
}

TEST(SparseVectors, may_be_empty) {
  const auto cut = sparse::top_k({}, 0);
  ASSERT_OK(cut.status());
  const auto payload = sparse::pack({}, {}, *cut);
  ASSERT_OK(payload.status());
  EXPECT_EQ(payload->size(), 12U);
  EXPECT_OK(sparse::add(*payload, {}));
}

}  // namespace
}  // namespace anyccl::test
