#pragma once
// What tests of teams of threads need.

#include <thread>
#include <vector>

namespace anyccl::test {

/// Calls work(thread) in each thread of a team, and returns when all have returned.
template <typename Work>
void team(int threads, const Work& work) {
  std::vector<std::jthread> others;
  for (int t = 1; t < threads; ++t) others.emplace_back([&work, t] { work(t); });
  work(0);
}

}  // namespace anyccl::test
