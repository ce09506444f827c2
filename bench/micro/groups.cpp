// What another communicator costs: time, memory and descriptors, of splits and of communicators by a unique id.
//
//   anyccl run -n RANKS groups [COUNT]     default: 100
//
// Prints, as rank 0 sees it: the time of the first communicator; then of COUNT splits of it (the first, the median, the last), which all stay
// open and have done a 4-byte AllReduce; of ten more by a unique id; and the descriptors, mappings and kilobytes (proportional set size, which
// counts shared pages once) that each of them adds to a rank.

#include <dirent.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "anyccl/anyccl.hpp"
#include "must.hpp"

namespace {

using anyccl::Communicator, anyccl::Rank, anyccl::Status;
using Clock = std::chrono::steady_clock;

struct Use {
  long descriptors = 0, mappings = 0, kilobytes = 0;

  static Use now() {
    Use use;
    DIR* const folder = ::opendir("/proc/self/fd");
    while (::readdir(folder) != nullptr) ++use.descriptors;
    ::closedir(folder);
    std::string line;
    for (std::ifstream maps("/proc/self/maps"); std::getline(maps, line);) ++use.mappings;
    for (std::ifstream sizes("/proc/self/smaps_rollup"); std::getline(sizes, line);)
      if (line.rfind("Pss:", 0) == 0) use.kilobytes = std::atol(line.c_str() + 4);
    return use;
  }
};

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

void use(Communicator& comm) {
  float x = 1;
  must(anyccl::wait(comm.all_reduce(anyccl::view(std::span(&x, 1)), anyccl::view(std::span(&x, 1)),
                                    anyccl::ReduceOp::sum)));
}

Communicator split_of(Communicator& world) {
  auto made = world.split(0, index(world.rank()));
  must(made.status());
  return std::move(*made);
}

Communicator met_again(Communicator& world) {
  anycclUniqueId id{};
  if (world.rank() == Rank{0})
    must(anycclGetUniqueId(&id) == anycclSuccess ? Status()
                                                 : Status(anyccl::Code::internal, "no id"));
  std::vector<std::uint8_t> bytes(sizeof id);
  std::memcpy(bytes.data(), &id, sizeof id);
  must(anyccl::wait(world.broadcast(anyccl::view(bytes), anyccl::view(bytes), Rank{0})));
  std::memcpy(&id, bytes.data(), sizeof id);
  auto made = Communicator::from_unique_id(anyccl::UniqueId(id), world.rank(), world.size());
  must(made.status());
  return std::move(*made);
}

/// Milliseconds of each.
template <typename Make>
std::vector<double> make(Communicator& world, int count, std::vector<Communicator>& all,
                         const Make& one) {
  std::vector<double> times;
  for (int i = 0; i < count; ++i) {
    use(world);
    const auto start = Clock::now();
    all.push_back(one(world));
    times.push_back(milliseconds_since(start));
    use(all.back());
  }
  return times;
}

void print(const char* what, std::vector<double> times, const Use& before, const Use& after) {
  const double first = times.front(), last = times.back();
  const auto count = static_cast<double>(times.size());
  std::sort(times.begin(), times.end());
  std::printf(
      "%-10s %4zu: first %7.2f  median %7.2f  last %7.2f ms; each %5.1f descriptors %5.1f mappings "
      "%7.1f KB\n",
      what, times.size(), first, times[times.size() / 2], last,
      static_cast<double>(after.descriptors - before.descriptors) / count,
      static_cast<double>(after.mappings - before.mappings) / count,
      static_cast<double>(after.kilobytes - before.kilobytes) / count);
}

}  // namespace

int main(int argc, char** argv) {
  const int count = argc > 1 ? std::atoi(argv[1]) : 100;
  const auto start = Clock::now();
  auto joined = Communicator::from_env();
  must(joined.status());
  Communicator world = std::move(*joined);
  const double first = milliseconds_since(start);
  use(world);
  std::vector<Communicator> all;
  const Use before = Use::now();
  const auto splits = make(world, count, all, split_of);
  const Use between = Use::now();
  const auto meetings = make(world, 10, all, met_again);
  const Use after = Use::now();
  if (world.rank() == Rank{0}) {
    std::printf("%d ranks: %.1f ms for the first communicator, %ld descriptors\n", world.size(),
                first, before.descriptors);
    print("splits", splits, before, between);
    print("by id", meetings, between, after);
  }
  use(world);
  return 0;
}
