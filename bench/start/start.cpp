// What starting costs with many ranks: from the start of the last process to the first result on all of them.
//
//   anyccl run -n RANKS start
//
// Every rank makes the first communicator from the environment and does an 8-byte AllReduce, twice. Prints how long after the start of the last
// process (its main()) the last rank had each, and the most descriptors and kilobytes of a rank (proportional set size, which counts shared pages
// once).

#include <dirent.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "../micro/must.hpp"
#include "anyccl/anyccl.hpp"

namespace {

using anyccl::Communicator, anyccl::Rank;

/// Milliseconds of a clock that all processes of this host share.
double now() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

double most(Communicator& comm, double x) {
  must(anyccl::wait(comm.all_reduce(anyccl::view(std::span(&x, 1)), anyccl::view(std::span(&x, 1)),
                                    anyccl::ReduceOp::max)));
  return x;
}

double descriptors() {
  double count = -3;  // two entries that are none, and the folder itself
  DIR* const folder = ::opendir("/proc/self/fd");
  while (::readdir(folder) != nullptr) ++count;
  ::closedir(folder);
  return count;
}

double kilobytes() {
  std::string line;
  for (std::ifstream sizes("/proc/self/smaps_rollup"); std::getline(sizes, line);)
    if (line.rfind("Pss:", 0) == 0) return std::atof(line.c_str() + 4);
  return 0;
}

}  // namespace

int main() {
  const double began = now();
  auto joined = Communicator::from_env();
  must(joined.status());
  const double created = now();
  Communicator world = std::move(*joined);
  const double last_began = most(world, began);
  const double first_result = now();
  most(world, 0);
  const double second_result = now(), used = descriptors(), size = kilobytes();
  const double joining = most(world, created) - last_began,
               first = most(world, first_result) - last_began,
               second = most(world, second_result - first_result),
               most_descriptors = most(world, used), most_kilobytes = most(world, size);
  if (world.rank() == Rank{0})
    std::printf(
        "%d ranks: created %.0f ms after the last start, first AllReduce %.0f ms, the next one "
        "takes "
        "%.0f ms; at most %.0f descriptors and %.0f KB\n",
        world.size(), joining, first, second, most_descriptors, most_kilobytes);
  return 0;
}
