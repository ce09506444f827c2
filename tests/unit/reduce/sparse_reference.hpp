#pragma once
// Sparse vectors as their definition says: sorted, and one element at a time. Nothing is taken from
// the kernels but the types.

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "platform/reduce/sparse.hpp"
#include "reference.hpp"

namespace anyccl::test {

using Floats = std::vector<float>;

inline std::uint32_t bits_of(float x) {
  return std::bit_cast<std::uint32_t>(x);
}
inline std::uint32_t magnitude_of(float x) {
  return bits_of(x) & 0x7fffffff;
}
/// Bit by bit, as NaNs do not equal themselves.
inline bool same(const Floats& a, const Floats& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), 4 * a.size()) == 0);
}
inline SparseVector vector_of(Floats& x) {
  return {x.data(), x.size()};
}

/// All places, those of the largest elements first, and of equal ones the first.
inline std::vector<std::size_t> by_magnitude(const Floats& x) {
  std::vector<std::size_t> places(x.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::stable_sort(places.begin(), places.end(), [&](std::size_t a, std::size_t b) {
    return magnitude_of(x[a]) > magnitude_of(x[b]);
  });
  return places;
}
/// The first k of these, as they lie in the vector.
inline std::vector<std::size_t> first_of(std::vector<std::size_t> places, std::size_t k) {
  places.resize(k);
  std::sort(places.begin(), places.end());
  return places;
}

/// The number that travels for `x`: the nearest one, but a finite one stays finite.
inline float rounded(DType values, float x) {
  if (values == DType::f32) return x;
  const Format f = format_of(values);
  Bits bits = nearest(f, static_cast<double>(x));
  if (std::isfinite(x) && (bits & (f.sign() - 1)) == f.past_finite()) --bits;
  return std::isnan(x) ? std::bit_cast<float>(0x7fc00000) : static_cast<float>(value(f, bits));
}

/// Kinds of vectors that programs and their mistakes make.
enum class Kind { normal, wide, special, equal, zero, few, sorted, against_the_sample };
constexpr Kind kKinds[] = {Kind::normal, Kind::wide, Kind::special, Kind::equal,
                           Kind::zero,   Kind::few,  Kind::sorted,  Kind::against_the_sample};

inline Floats make(Kind kind, std::size_t count, std::mt19937_64& random) {
  Floats x(count);
  std::normal_distribution<float> normal;
  for (std::size_t i = 0; i < count; ++i) {
    switch (kind) {
      case Kind::normal:
        x[i] = normal(random);
        break;
      case Kind::wide:  // also denormal ones
        x[i] = std::ldexp(normal(random), static_cast<int>(random() % 290) - 160);
        break;
      case Kind::special:
        x[i] = std::bit_cast<float>(static_cast<std::uint32_t>(random_element(DType::f32, random)));
        break;
      case Kind::equal:
        x[i] = random() % 2 == 0 ? 0.5F : -0.5F;
        break;
      case Kind::zero:
        x[i] = random() % 2 == 0 ? 0.0F : -0.0F;
        break;
      case Kind::few:
        x[i] = random() % 97 == 0 ? normal(random) : 0.0F;
        break;
      case Kind::sorted:
        x[i] = static_cast<float>(i);
        break;
      case Kind::against_the_sample:
        x[i] = i % 61 == 0 ? 0.0F : 1 + std::abs(normal(random));
        break;
    }
  }
  return x;
}

using Payload = std::vector<std::byte>;

inline Result<Payload> packed(const SparseKernels& kernels, Floats& v, Floats* u,
                              const anycclSparseCut_t& cut, DType values = DType::f32) {
  const auto most = sparse_bound(v.size(), cut.entries, values);
  if (!most.ok()) return most.status();
  Payload payload(*most);
  const auto bytes =
      sparse_pack(kernels, vector_of(v), u == nullptr ? nullptr : u->data(), cut, values, payload);
  if (!bytes.ok()) return bytes.status();
  payload.resize(*bytes);
  payload.shrink_to_fit();  // so that sanitizers see a read beyond its end
  return payload;
}

}  // namespace anyccl::test
