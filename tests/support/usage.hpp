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
inline std::ptrdiff_t descriptors() {
  return entries_of("/proc/self/fd");
}
/// pthread_join returns a moment before the kernel takes the thread off this list, and nothing
/// tells when it has: so it is looked at again, for two seconds at most, while it shows more than
/// `wanted`.
inline std::ptrdiff_t threads(std::ptrdiff_t wanted) {
  std::ptrdiff_t now = entries_of("/proc/self/task");
  for (int i = 0; i < 200 && now > wanted; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    now = entries_of("/proc/self/task");
  }
  return now;
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
