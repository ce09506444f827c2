// Shared by the programs that measure groups of a library: one rule of timing, one form of output.
//
//   PROGRAM [COUNT [RANKS FOLDER]]     COUNT: of further groups, 32; FOLDER: empty
//
// With RANKS and FOLDER the processes wait there until all have come, before the clock starts, so that
// starting programs does not count. A time is the maximum over the ranks; of COUNT further groups, the
// median. Rank 0 prints a line per figure: name, tab, value.
#pragma once

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace bench {

using Clock = std::chrono::steady_clock;

inline double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

inline int count_entries(const std::string& path) {
  DIR* const folder = ::opendir(path.c_str());
  if (folder == nullptr) std::perror(path.c_str()), std::exit(1);
  int count = 0;
  while (::readdir(folder) != nullptr) ++count;
  ::closedir(folder);
  return count - 2;  // . and ..
}

/// Returns once all processes have called it. Looks for their files again and again, as nothing tells of one.
inline void wait_for_all(const std::string& folder, int ranks) {
  std::ofstream(folder + "/" + std::to_string(::getpid()));
  while (count_entries(folder) < ranks) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

/// What this process holds.
struct Use {
  double descriptors = 0, mappings = 0, kilobytes = 0;

  static Use now() {
    Use use;
    use.descriptors = count_entries("/proc/self/fd");
    std::string line;
    for (std::ifstream maps("/proc/self/maps"); std::getline(maps, line);) ++use.mappings;
    // Of shared pages, the share of this process.
    for (std::ifstream sizes("/proc/self/smaps_rollup"); std::getline(sizes, line);)
      if (line.rfind("Pss:", 0) == 0) use.kilobytes = std::atof(line.c_str() + 4);
    return use;
  }
};

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// `Library` is the first communicator, and made here. It has rank(); use(), a 4-byte AllReduce of
/// all; maximum(vector) over the ranks, element by element; and next(), another group of all, which
/// has use(), too.
template <typename Library>
int measure(int argc, char** argv) {
  const auto count = static_cast<std::size_t>(argc > 1 ? std::atoi(argv[1]) : 32);
  if (argc > 3) wait_for_all(argv[3], std::atoi(argv[2]));
  const auto start = Clock::now();
  Library world;
  world.use();
  std::vector<double> first{milliseconds_since(start)}, made, used;
  std::vector<decltype(world.next())> groups;
  groups.reserve(count);
  const Use before = Use::now();
  for (std::size_t i = 0; i < count; ++i) {
    world.use();
    const auto begin = Clock::now();
    groups.push_back(world.next());
    made.push_back(milliseconds_since(begin));
    groups.back().use();
    used.push_back(milliseconds_since(begin));
  }
  const Use after = Use::now();
  for (std::vector<double>* times : {&first, &made, &used}) world.maximum(*times);
  if (world.rank() != 0) return 0;
  std::printf("first_ms\t%.3f\n", first[0]);
  if (count == 0) return 0;
  const auto each = [&](double more) { return more / static_cast<double>(count); };
  std::printf("next_ms\t%.4f\nnext_used_ms\t%.4f\n", median(made), median(used));
  std::printf("kilobytes\t%.1f\ndescriptors\t%.2f\nmappings\t%.2f\n",
              each(after.kilobytes - before.kilobytes),
              each(after.descriptors - before.descriptors), each(after.mappings - before.mappings));
  return 0;
}

}  // namespace bench
