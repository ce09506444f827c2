#pragma once
// The results of a coded AllReduce, from its definition: with the codecs of the library, and one
// element at a time otherwise.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "anyccl/anyccl.hpp"

namespace anyccl::test {

using Floats = std::vector<float>;
using CodecName = codec::Codec;

constexpr CodecName kEveryCodec[] = {
    CodecName::bf16,       CodecName::f16,        CodecName::int8, CodecName::mxint8,
    CodecName::mxfp8_e4m3, CodecName::mxfp8_e5m2, CodecName::int4};

/// Element i of a rank: of several magnitudes, also in one block; a bf16 number, which an f16 can
/// be, too.
inline float element_of(int rank, std::size_t i) {
  std::uint64_t x = (static_cast<std::uint64_t>(rank) << 40 | i) * 0x9e3779b97f4a7c15;
  x ^= x >> 29;
  x *= 0xbf58476d1ce4e5b9;
  const auto mantissa = static_cast<float>(static_cast<int>(x >> 56) - 128);
  return std::ldexp(mantissa, static_cast<int>(x >> 33 & 7) - 9);
}
inline Floats vector_of(int rank, std::size_t count) {
  Floats x(count);
  for (std::size_t i = 0; i < count; ++i) x[i] = element_of(rank, i);
  return x;
}

/// The aligned tree over `low` to `high` of equally long vectors.
inline Floats tree(const std::vector<Floats>& x, std::size_t low, std::size_t high) {
  if (high - low == 1) return x[low];
  const std::size_t left = std::bit_floor(high - low - 1);
  Floats sum = tree(x, low, low + left);
  const Floats right = tree(x, low + left, high);
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += right[i];
  return sum;
}

inline std::vector<std::byte> encoded(CodecName codec, const Floats& x) {
  auto payload = codec::encode(codec, View(x));
  EXPECT_TRUE(payload.ok()) << payload.status().message();
  return *std::move(payload);
}

/// The sum of `hosts` vectors over the wire.
inline Floats over_the_wire(CodecName codec, const std::vector<Floats>& hosts, float divisor) {
  std::vector<std::vector<std::byte>> payloads;
  std::vector<std::span<const std::byte>> views;
  for (const Floats& x : hosts) payloads.push_back(encoded(codec, x));
  for (const auto& payload : payloads) views.emplace_back(payload);
  Floats sum(hosts[0].size());
  EXPECT_TRUE(codec::decode(codec, views, View(sum)).ok());
  for (float& one : sum) one /= divisor;
  if (hosts.size() == 2) return sum;
  EXPECT_TRUE(codec::decode(codec, encoded(codec, sum), View(sum)).ok());
  return sum;
}

/// Of ranks whose hosts are the letters, in the order of these.
inline Floats coded_sum(CodecName codec, const std::string& hosts, std::size_t count, bool avg) {
  std::vector<Floats> of_hosts;
  std::string seen;
  for (const char host : hosts) {
    if (seen.find(host) != std::string::npos) continue;
    seen += host;
    std::vector<Floats> ranks;
    for (std::size_t r = 0; r < hosts.size(); ++r)
      if (hosts[r] == host) ranks.push_back(vector_of(static_cast<int>(r), count));
    of_hosts.push_back(tree(ranks, 0, ranks.size()));
  }
  return over_the_wire(codec, of_hosts, avg ? static_cast<float>(hosts.size()) : 1.0F);
}

inline bool same_bits(const Floats& a, const Floats& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), 4 * a.size()) == 0);
}

}  // namespace anyccl::test
