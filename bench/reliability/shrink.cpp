// How long it takes from the death of a rank until the others have the result of an AllReduce again, in
// a communicator of those that are left, and until they have one together with a new rank. Ranks are
// processes of this host, which all run AllReduce of 8 bytes without a pause; the last one is killed by a
// signal. The new rank is a process that has been started before.
//   shrink [RANKS [ROUNDS]]    ANYCCL_TRANSPORT chooses what connects them
// Prints the median, lowest and highest of all rounds, of the rank that is last in each.

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string>
#include <vector>

#include "anyccl/anyccl.hpp"

namespace {

using anyccl::Communicator, anyccl::Rank, anyccl::ReduceOp, anyccl::Status, anyccl::view;
using Clock = std::chrono::steady_clock;

constexpr int kMostRanks = 64;

constexpr const char* kStages[] = {"error", "communicator", "result", "grown", "next result"};
using Times = std::array<double, std::size(kStages)>;

/// What the processes of a round share.
struct Round {
  anyccl::UniqueId id, grow_id;
  std::atomic<bool> has_id{false}, has_grow_id{false};
  std::atomic<int> joined{0};
  Clock::time_point killed;
  /// Of each rank, when it had each of kStages.
  std::array<std::array<Clock::time_point, std::size(kStages)>, kMostRanks> at;
};

Status reduce(Communicator& comm) {
  std::vector<double> x{1};
  auto work = comm.all_reduce(view(x), view(x), ReduceOp::sum);
  return work.ok() ? work->wait() : work.status();
}

[[noreturn]] void fail(const Status& why) {
  std::fprintf(stderr, "%s\n", std::string(why.message()).c_str());
  std::_Exit(1);
}

[[noreturn]] void run_rank(Round& round, int rank, int ranks) {
  if (rank == 0) {
    auto id = anyccl::UniqueId::create();
    if (!id.ok()) fail(id.status());
    round.id = *id;
    round.has_id = true;
  }
  while (!round.has_id) ::usleep(100);  // a word of shared memory, which wakes nobody
  auto comm = Communicator::from_unique_id(round.id, Rank{rank}, ranks);
  if (!comm.ok()) fail(comm.status());
  ++round.joined;
  while (reduce(*comm).ok()) continue;
  auto& at = round.at[static_cast<std::size_t>(rank)];
  at[0] = Clock::now();
  auto left = comm->shrink({}, {}, ANYCCL_SHRINK_ABORT);
  at[1] = Clock::now();
  if (!left.ok()) fail(left.status());
  const Status again = reduce(*left);
  at[2] = Clock::now();
  if (!again.ok() || left->size() != ranks - 1) fail(again);
  if (rank == 0) {
    auto id = left->grow_id();
    if (!id.ok()) fail(id.status());
    round.grow_id = *id;
    round.has_grow_id = true;
  }
  auto grown = left->grow(ranks, rank == 0 ? &round.grow_id : nullptr);
  at[3] = Clock::now();
  if (!grown.ok()) fail(grown.status());
  const Status with_new = reduce(*grown);
  at[4] = Clock::now();
  if (!with_new.ok()) fail(with_new);
  std::_Exit(0);
}

/// Takes the place of the rank that died.
[[noreturn]] void run_new_rank(const Round& round, int ranks) {
  while (!round.has_grow_id) ::usleep(100);  // the same
  auto grown = Communicator().grow(ranks, &round.grow_id, Rank{ranks - 1});
  if (!grown.ok()) fail(grown.status());
  if (const Status status = reduce(*grown); !status.ok()) fail(status);
  std::_Exit(0);
}

using Milliseconds = std::chrono::duration<double, std::milli>;

/// Of the last rank: to each of kStages.
Times measure(int ranks) {
  void* const shared =
      ::mmap(nullptr, sizeof(Round), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) std::exit(1);
  auto& round = *new (shared) Round;
  std::vector<pid_t> processes;
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t pid = ::fork();
    if (pid == 0) run_rank(round, rank, ranks);
    processes.push_back(pid);
  }
  const pid_t new_process = ::fork();
  if (new_process == 0) run_new_rank(round, ranks);
  while (round.joined < ranks) ::usleep(1000);  // the same
  ::usleep(50'000);  // so that the death comes in the middle of the calls of all ranks
  round.killed = Clock::now();
  ::kill(processes.back(), SIGKILL);
  int status = 0;
  ::waitpid(new_process, &status, 0);
  bool is_good = status == 0;
  for (int rank = 0; rank < ranks; ++rank) {
    ::waitpid(processes[static_cast<std::size_t>(rank)], &status, 0);
    is_good = is_good && (rank == ranks - 1 || status == 0);
  }
  if (!is_good) std::exit(1);
  Times most{};
  for (std::size_t rank = 0; rank + 1 < static_cast<std::size_t>(ranks); ++rank)
    for (std::size_t i = 0; i < most.size(); ++i)
      most[i] = std::max(most[i], Milliseconds(round.at[rank][i] - round.killed).count());
  ::munmap(shared, sizeof(Round));
  return most;
}

}  // namespace

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 8, rounds = argc > 2 ? std::atoi(argv[2]) : 20;
  if (ranks < 2 || ranks > kMostRanks || rounds < 1) return 2;
  std::array<std::vector<double>, std::size(kStages)> all;
  for (int i = 0; i < rounds; ++i) {
    const Times one = measure(ranks);
    for (std::size_t k = 0; k < all.size(); ++k) all[k].push_back(one[k]);
  }
  for (std::size_t k = 0; k < all.size(); ++k) {
    std::sort(all[k].begin(), all[k].end());
    std::printf("%d ranks, kill to %-12s %7.2f ms (%.2f to %.2f, %d rounds)\n", ranks, kStages[k],
                all[k][all[k].size() / 2], all[k].front(), all[k].back(), rounds);
  }
}
