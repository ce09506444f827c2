#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "algorithm/verify/check.hpp"

namespace anyccl::verify {

inline std::vector<Schedule> built(Collective collective, std::string_view name, int n) {
  return build_all(*find_algorithm(collective, name), {collective, n});
}

/// What the catalog has for so many ranks on one host.
inline std::vector<const Algorithm*> algorithms_for(int n) {
  std::vector<const Algorithm*> all;
  for (const Algorithm* a : all_algorithms())
    if (a->supports({a->collective, n})) all.push_back(a);
  return all;
}

/// Schedules of all ranks, written on the spot.
inline std::vector<Schedule> written(const Shape& shape,
                                     const std::function<void(Builder&, Rank)>& write,
                                     std::uint32_t chunks_per_block = 1) {
  std::vector<Schedule> ranks;
  for (int r = 0; r < shape.size; ++r) {
    Builder b(shape, Rank{r}, chunks_per_block);
    write(b, Rank{r});
    ranks.push_back(std::move(b).finish());
  }
  return ranks;
}

/// A failure whose message has all the words; an empty message has none.
inline void expect_words(const Status& status, const std::vector<std::string>& words) {
  EXPECT_FALSE(status.ok());
  for (const std::string& word : words)
    EXPECT_NE(status.message().find(word), std::string_view::npos)
        << "no '" << word << "' in: " << status.message();
}

}  // namespace anyccl::verify
