// A cgroup whose memory limit is too small: what would not fit is an error that says so, before the system kills
// the rank.

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "support/ranks.hpp"

namespace anyccl::test {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& path, const std::string& text) {
  std::ofstream out(path);
  out << text << std::flush;
  EXPECT_TRUE(out.good()) << path << ": " << text
                          << " (needs root and cgroups that can be written)";
}

/// A memory cgroup for this process, of version 1 or 2, below the root of those that are mounted.
void enter_cgroup(std::size_t limit) {
  const bool v1 = fs::exists("/sys/fs/cgroup/memory/cgroup.procs");
  const fs::path root = v1 ? "/sys/fs/cgroup/memory" : "/sys/fs/cgroup";
  if (!v1) write(root / "cgroup.subtree_control", "+memory");
  const fs::path own = root / ("anyccl-test-" + std::to_string(::getpid()));
  fs::create_directory(own);
  write(own / (v1 ? "memory.limit_in_bytes" : "memory.max"), std::to_string(limit));
  write(own / "cgroup.procs", std::to_string(::getpid()));
}

/// By the parent of those that entered: a cgroup can go when its processes have.
void remove_cgroups() {
  for (const char* root : {"/sys/fs/cgroup/memory", "/sys/fs/cgroup"}) {
    if (!fs::exists(root)) continue;
    for (const auto& entry : fs::directory_iterator(root))
      if (entry.path().filename().string().starts_with("anyccl-test-")) {
        std::error_code in_use;  // by a test beside this one
        fs::remove(entry.path(), in_use);
      }
  }
}

TEST(MemoryCgroup, that_is_too_small_for_shared_buffers_is_an_error) {
  expect_all_passed(run_processes(1, [](Communicator&) {
    enter_cgroup(std::size_t{32} << 20);
    void* memory = nullptr;
    EXPECT_EQ(anycclMemAlloc(&memory, std::size_t{64} << 20), anycclSystemError);
    const std::string text = anycclGetLastError(nullptr);
    EXPECT_NE(text.find("the memory limit of the cgroup leaves "), std::string::npos) << text;
    EXPECT_EQ(anycclMemAlloc(&memory, std::size_t{8} << 20), anycclSuccess)
        << anycclGetLastError(nullptr);
    EXPECT_EQ(anycclMemFree(memory), anycclSuccess);
  }));
  remove_cgroups();
}

}  // namespace
}  // namespace anyccl::test
