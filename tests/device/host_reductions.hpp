#pragma once
// Vectors of random bits, and what the host makes of them.

#include <random>
#include <vector>

#include "base/types.hpp"
#include "framework/collective/portions.hpp"
#include "platform/reduce/reduce.hpp"

namespace anyccl::test {

using Vectors = std::vector<std::vector<std::byte>>;

/// Any bits, in every third element a number that is near to others, in every fifth a zero with
/// either sign, of floats.
inline Vectors random_vectors(DType type, std::size_t vectors, std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  const std::size_t element = bytes_of(type);
  Vectors all(vectors, std::vector<std::byte>(count * element));
  for (auto& vector : all)
    for (std::size_t i = 0; i < vector.size(); ++i) {
      const bool is_plain = (i / element) % 3 == 0, is_zero = (i / element) % 5 == 1;
      vector[i] = static_cast<std::byte>(is_plain && i % 2 == 1 ? 0x3c + random() % 8 : random());
      if (is_zero) vector[i] &= static_cast<std::byte>((i + 1) % element == 0 ? 0x80 : 0);
    }
  return all;
}

/// As a step of a call does it: small types are added up and divided in f32.
inline Portions average_on_host(DType type, std::size_t sources) {
  Portions portions;
  const bool is_small =
      type == DType::f16 || type == DType::bf16 || type == DType::f8e4m3 || type == DType::f8e5m2;
  const DType sum = is_small ? DType::f32 : type;
  if (is_small) {
    portions.widen = converter(type, sum);
    portions.narrow = converter(sum, type);
    portions.growth = bytes_of(sum) / bytes_of(type);
  }
  portions.kernel = *reduce_kernel(sum, ReduceOp::sum);
  portions.divide = *divide_kernel(sum);
  portions.divisor = static_cast<std::uint32_t>(sources) + 1;
  portions.element = bytes_of(type);
  return portions;
}

inline std::vector<std::byte> on_host(const Portions& portions, const Vectors& sources,
                                      std::size_t count) {
  std::vector<const void*> pointers;
  for (const auto& source : sources) pointers.push_back(source.data());
  std::vector<std::byte> result(sources[0].size()), room(portions.room(sources.size()));
  std::vector<const void*> addresses(sources.size());
  portions.run(result.data(), pointers.data(), static_cast<std::uint32_t>(sources.size()), count,
               room.data(), addresses.data());
  return result;
}

inline std::vector<std::byte> on_host(ReduceFn kernel, const Vectors& sources, std::size_t count) {
  std::vector<const void*> pointers;
  for (const auto& source : sources) pointers.push_back(source.data());
  std::vector<std::byte> result(sources[0].size());
  kernel(result.data(), nullptr, pointers.data(), pointers.size(), count);
  return result;
}

inline std::vector<DType> all_types() {
  std::vector<DType> all;
  for (std::size_t type = 0; type < kDTypes; ++type) all.push_back(static_cast<DType>(type));
  return all;
}

}  // namespace anyccl::test
