#pragma once
// What this process holds, for tests that look for leaks.

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

namespace anyccl::test {

/// Whether the kernel says that a thread, given by its folder, is not on its way out: one that was
/// joined stays on the list for a moment.
inline bool runs(const std::filesystem::path& thread) {
  std::ifstream file(thread / "stat");
  std::string line, field;
  std::getline(file, line);  // number (name) state parent group session terminal its_group flags
  if (!file) return false;   // it has left the list
  std::istringstream fields(line.substr(line.rfind(')') + 1));
  for (int i = 0; i < 7; ++i) fields >> field;
  constexpr unsigned long kExiting = 4;  // PF_EXITING
  return (std::stoul(field) & kExiting) == 0;
}
/// How many threads this process has; one that was joined is not among them.
inline std::ptrdiff_t threads() {
  const std::filesystem::directory_iterator entries("/proc/self/task");
  return std::count_if(begin(entries), end(entries), [](const auto& entry) { return runs(entry); });
}
inline std::ptrdiff_t descriptors() {
  const std::filesystem::directory_iterator entries("/proc/self/fd");
  return std::distance(begin(entries), end(entries));
}

/// What `count` gives, asked again, for two seconds at most, while it is more than `wanted`: the
/// progress thread may be the last to let go of a communicator, and nothing tells when.
template <class Count>
std::ptrdiff_t settled(const Count& count, std::ptrdiff_t wanted) {
  std::ptrdiff_t now = count();
  for (int i = 0; i < 200 && now > wanted; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    now = count();
  }
  return now;
}
inline std::ptrdiff_t threads(std::ptrdiff_t wanted) {
  return settled([] { return threads(); }, wanted);
}
inline std::ptrdiff_t descriptors(std::ptrdiff_t wanted) {
  return settled([] { return descriptors(); }, wanted);
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
