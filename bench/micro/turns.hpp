#pragma once
// Ways of doing the same that take turns, so that all of them see the same machine.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

namespace bench {

inline double quantile(std::vector<double> values, double part) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(part * static_cast<double>(values.size() - 1))];
}

struct Way {
  std::string name;
  std::function<void()> run;
  std::vector<double> us = {};  // of a call, by round
};

/// Medians and quartiles, in a line.
inline void print_times(const std::vector<Way>& ways) {
  for (const Way& way : ways)
    std::printf("   %9.2f (%.2f to %.2f)", quantile(way.us, 0.5), quantile(way.us, 0.25),
                quantile(way.us, 0.75));
  std::printf("\n");
}

/// `calls` calls of each in each round; a round before these makes plans and memory.
inline void take_turns(std::vector<Way>& ways, int rounds, int calls) {
  for (int round = -1; round < rounds; ++round)
    for (Way& way : ways) {
      const auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < calls; ++i) way.run();
      const std::chrono::duration<double, std::micro> time =
          std::chrono::steady_clock::now() - begin;
      if (round >= 0) way.us.push_back(time.count() / calls);
    }
}

}  // namespace bench
