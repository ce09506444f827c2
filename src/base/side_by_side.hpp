#pragma once
// A thread that creates several communicators at once does so in other threads, side by side, as
// each communicator waits for its ranks, which may be among the others.

#include <functional>
#include <span>
#include <system_error>
#include <thread>
#include <vector>

#include "base/error.hpp"

namespace anyccl {

/// Runs the jobs at the same time, each in a thread of its own, as they may wait for each other.
/// Returns when all have ended, with the error of the first that has one; also if one throws, or if
/// the system gives no thread for it.
inline Status run_side_by_side(std::span<const std::function<Status()>> jobs) {
  std::vector<Status> problems(jobs.size());
  std::vector<std::thread> threads;
  threads.reserve(jobs.size());
  const auto run = [&](std::size_t i) {
    try {
      problems[i] = jobs[i]();
    } catch (const std::exception& e) {
      problems[i] = Status(Code::system_error, e.what());
    }
  };
  Status not_started;  // which the others wait for in vain
  try {
    for (std::size_t i = 0; i < jobs.size(); ++i) threads.emplace_back(run, i);
  } catch (const std::system_error& e) {
    not_started =
        system_error(e.code().value(), "starting thread {} of {}", threads.size() + 1, jobs.size());
  }
  for (std::thread& t : threads) t.join();
  ANYCCL_CHECK(not_started);
  for (const Status& problem : problems) ANYCCL_CHECK(problem);
  return {};
}

}  // namespace anyccl
