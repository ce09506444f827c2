// A cgroup whose memory limit is too small: what would not fit is an error that says so, before the
// system kills the rank.

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "support/ranks.hpp"
#include "support/shared_counts.hpp"

namespace anyccl::test {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& path, const std::string& text) {
  std::ofstream out(path);
  out << text << std::flush;
  EXPECT_TRUE(out.good()) << path << ": " << text
                          << " (needs root and cgroups that can be written)";
}

/// The beginning of the names of cgroups that children of this process enter.
std::string prefix(pid_t test) {
  return "anyccl-test-" + std::to_string(test) + "-";
}

/// A memory cgroup for this process, of version 1 or 2, below the root of those that are mounted.
void enter_cgroup(std::size_t limit) {
  const bool v1 = fs::exists("/sys/fs/cgroup/memory/cgroup.procs");
  const fs::path root = v1 ? "/sys/fs/cgroup/memory" : "/sys/fs/cgroup";
  if (!v1) write(root / "cgroup.subtree_control", "+memory");
  const fs::path own = root / (prefix(::getppid()) + std::to_string(::getpid()));
  fs::create_directory(own);
  write(own / (v1 ? "memory.limit_in_bytes" : "memory.max"), std::to_string(limit));
  write(own / "cgroup.procs", std::to_string(::getpid()));
}

/// By the parent of those that entered: a cgroup can go when its processes have.
void remove_cgroups() {
  for (const char* root : {"/sys/fs/cgroup/memory", "/sys/fs/cgroup"}) {
    if (!fs::exists(root)) continue;
    for (const auto& entry : fs::directory_iterator(root))
      if (entry.path().filename().string().starts_with(prefix(::getpid())))
        fs::remove(entry.path());
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

TEST(MemoryCgroup, that_is_too_small_for_a_communicator_is_an_error_of_all_ranks) {
  const std::vector<Outcome> ranks = run_processes(
      3, [](Communicator&) {},
      [](int rank) {
        if (rank == 1) enter_cgroup(std::size_t{1} << 20);
        return Environment::Variables{{"ANYCCL_TIMEOUT", "20"}};
      });
  for (const Outcome& rank : ranks) {
    const std::string& text = rank.output;
    EXPECT_EQ(rank.exit_code, 3) << text;
    EXPECT_NE(text.find("the memory limit of the cgroup leaves "), std::string::npos) << text;
    EXPECT_NE(text.find("rank 1"), std::string::npos) << text;
  }
  remove_cgroups();
}

/// One after the other, to the first that fails. The root goes ahead of its reader.
Status broadcasts_from_rank_1(Communicator& comm, std::span<float> x) {
  Status status;
  for (int i = 0; i < 8 && status.ok(); ++i)
    status = wait(comm.broadcast(view(x), view(x), Rank{1}));
  return status;
}

/// Nobody reads what rank 1 publishes, so that all of it has to be in its ring.
TEST(MemoryCgroup, that_is_too_small_for_a_growing_ring_is_an_error_of_all_ranks) {
  const SharedCounts counts;
  expect_all_passed(run_processes(
      2,
      [&](Communicator& comm) {
        std::vector<float> x(1 << 18, 1.0F);
        const bool gives = comm.rank() == Rank{1};
        if (gives) enter_cgroup(std::size_t{4} << 20);
        while (!gives && counts->over.load() == 0) std::this_thread::yield();
        const Status status = broadcasts_from_rank_1(comm, x);
        counts->over.store(1);
        const std::string text(status.message());
        EXPECT_EQ(status.code(), Code::system_error);
        EXPECT_NE(text.find("the memory limit of the cgroup leaves "), std::string::npos) << text;
        EXPECT_NE(text.find("rank 1: "), std::string::npos) << text;
        static_cast<void>(comm.abort());
      },
      [](int) {
        return Environment::Variables{
            {"ANYCCL_BUFFSIZE", "32M"}, {"ANYCCL_SHM_COPY", "staged"}, {"ANYCCL_OP_TIMEOUT", "30"}};
      }));
  remove_cgroups();
}

}  // namespace
}  // namespace anyccl::test
