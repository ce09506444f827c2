#pragma once
// Random input whose seed the log shows.

#include <gtest/gtest.h>

#include <cstdio>
#include <random>
#include <string>
#include <vector>

namespace anyccl::bootstrap::test {

inline std::vector<std::byte> random_text(std::mt19937& random, std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random());
  return bytes;
}

/// A generator whose seed the log shows.
inline std::mt19937 seeded() {
  const unsigned seed = std::random_device{}();
  testing::Test::RecordProperty("seed", std::to_string(seed));
  std::printf("seed %u\n", seed);
  return std::mt19937(seed);
}

}  // namespace anyccl::bootstrap::test
