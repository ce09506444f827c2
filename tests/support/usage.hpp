#pragma once
// What this process holds, for tests that look for leaks.

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace anyccl::test {

inline std::ptrdiff_t entries_of(const char* folder) {
  const std::filesystem::directory_iterator entries(folder);
  return std::distance(begin(entries), end(entries));
}
/// How many entries `folder` has, looked at again, for two seconds at most, while there are more
/// than `wanted`: pthread_join returns a moment before the kernel takes the thread off its list,
/// the progress thread may be the last to let go of a communicator, and nothing tells when.
inline std::ptrdiff_t entries_of(const char* folder, std::ptrdiff_t wanted) {
  std::ptrdiff_t now = entries_of(folder);
  for (int i = 0; i < 200 && now > wanted; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    now = entries_of(folder);
  }
  return now;
}
inline std::ptrdiff_t threads(std::ptrdiff_t wanted) {
  return entries_of("/proc/self/task", wanted);
}
inline std::ptrdiff_t descriptors(std::ptrdiff_t wanted) {
  return entries_of("/proc/self/fd", wanted);
}

/// How often `text` stands in /proc/self/maps.
inline int mappings_of(const std::string& text) {
  std::ifstream maps("/proc/self/maps");
  int found = 0;
  for (std::string line; std::getline(maps, line);)
    if (line.find(text) != std::string::npos) ++found;
  return found;
}

}  // namespace anyccl::test
