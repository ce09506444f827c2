#pragma once
// Ranks that are processes of this host, for programs that break them.

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "anyccl/anyccl.hpp"
#include "support/shared_counts.hpp"

namespace anyccl::bench {

using Clock = std::chrono::steady_clock;

[[noreturn]] inline void fail(const Status& why) {
  std::fprintf(stderr, "%s\n", std::string(why.message()).c_str());
  std::_Exit(1);
}

/// Looks ten times a millisecond: std::atomic::wait() wakes no other process, and a rank that yields instead would
/// take the cores from the ranks that are measured.
template <typename Done>
void wait_until(const Done& done) {
  while (!done()) ::usleep(100);
}

/// Until the ranks are in the middle of their calls, which no other process can see.
inline void let_calls_begin() {
  ::usleep(50'000);
}

/// Where the ranks of a round meet, in memory that they share.
struct Meeting {
  UniqueId id;
  std::atomic<bool> has_id{false};
  std::atomic<int> joined{0};

  Communicator join(int rank, int ranks) {
    if (rank == 0) {
      auto made = UniqueId::create();
      if (!made.ok()) fail(made.status());
      id = *made;
      has_id = true;
    }
    wait_until([&] { return has_id.load(); });
    auto comm = Communicator::from_unique_id(id, Rank{rank}, ranks);
    if (!comm.ok()) fail(comm.status());
    ++joined;
    return *std::move(comm);
  }
};

template <typename Element>
Status reduce(Communicator& comm, std::vector<Element>& x) {
  auto work = comm.all_reduce(view(x), view(x), ReduceOp::sum);
  return work.ok() ? work->wait() : work.status();
}

inline double ms_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

/// "4.20 ms (3.60 to 4.50)": the median, the lowest and the highest.
inline std::string spread_of(std::vector<double> ms) {
  std::sort(ms.begin(), ms.end());
  char text[64];
  std::snprintf(text, sizeof text, "%.2f ms (%.2f to %.2f)", ms[ms.size() / 2], ms.front(),
                ms.back());
  return text;
}

}  // namespace anyccl::bench
