// What a communicator is by itself: the heap memory and the time of one rank's Comm, without
// transports, bootstrap and peers.
//
//   communicator_memory [RANKS ...]     default: 2 8 64 1024
//
// Its peers are played: what they publish is there at once. Prints, per number of ranks, the bytes of
// a Comm and the time that making and destroying one takes; what its first AllReduce adds and needs
// while it is planned, and how long that takes.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "framework/communicator/communicator.hpp"
#include "must.hpp"
#include "support/counted_heap.hpp"
#include "unit/framework/played_peers.hpp"

namespace {

using namespace anyccl;
using Clock = std::chrono::steady_clock;

void reduce(Comm& comm) {
  float x = 1;
  Call call;
  call.count = 1;
  call.input = call.output = reinterpret_cast<std::byte*>(&x);
  must(comm.run(call));
}

double microseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

/// Microseconds; the median of many.
double time_of_one(int size) {
  std::vector<double> times;
  for (int i = 0; i < 101; ++i) {
    Membership m = test::rank_0_of(size);
    const auto start = Clock::now();
    { const auto comm = std::make_shared<Comm>(std::move(m)); }
    times.push_back(microseconds_since(start));
  }
  std::nth_element(times.begin(), times.begin() + 50, times.end());
  return times[50];
}

void measure(int size) {
  Membership m = test::rank_0_of(size);
  const std::size_t before = test::heap_bytes;
  const auto comm = std::make_shared<Comm>(std::move(m));
  const std::size_t made = test::heap_bytes;
  test::heap_peak = made;
  const auto start = Clock::now();
  reduce(*comm);
  const double first = microseconds_since(start);
  const std::size_t used = test::heap_bytes, peak = test::heap_peak;
  std::printf(
      "%5d ranks: %7zu bytes, %6.1f us; the first AllReduce %6zu bytes (%7zu meanwhile), %8.1f "
      "us\n",
      size, made - before, time_of_one(size), used - made, peak - made, first);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<int> sizes;
  for (int i = 1; i < argc; ++i) sizes.push_back(std::atoi(argv[i]));
  if (sizes.empty()) sizes = {2, 8, 64, 1024};
  reduce(*std::make_shared<Comm>(test::rank_0_of(2)));  // a process makes some things once
  for (const int size : sizes) measure(size);
  return 0;
}
