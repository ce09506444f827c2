// How long it takes from the death of a rank until the others have the result of an AllReduce again, in
// a communicator of those that are left, and until they have one together with a new rank. Ranks are
// processes of this host, which all run AllReduce of 8 bytes without a pause; the last one is killed by a
// signal. The new rank is a process that has been started before.
//   shrink [RANKS [ROUNDS]]    ANYCCL_TRANSPORT chooses what connects them
// Prints the median, lowest and highest of all rounds, of the rank that is last in each.

#include <sys/wait.h>

#include <array>
#include <csignal>
#include <iterator>
#include <vector>

#include "processes.hpp"

namespace {

using namespace anyccl;
using namespace anyccl::bench;

constexpr int kMostRanks = 64;

constexpr const char* kStages[] = {"error", "communicator", "result", "grown", "next result"};
using Times = std::array<double, std::size(kStages)>;

/// What the processes of a round share.
struct Round {
  Meeting meeting;
  UniqueId grow_id;
  std::atomic<bool> has_grow_id{false};
  Clock::time_point killed;
  /// Of each rank, when it had each of kStages.
  std::array<std::array<Clock::time_point, std::size(kStages)>, kMostRanks> at;
};

Status reduce(Communicator& comm) {
  std::vector<double> x{1};
  return bench::reduce(comm, x);
}

[[noreturn]] void run_rank(Round& round, int rank, int ranks) {
  Communicator comm = round.meeting.join(rank, ranks);
  while (reduce(comm).ok()) continue;
  auto& at = round.at[static_cast<std::size_t>(rank)];
  at[0] = Clock::now();
  auto left = comm.shrink({}, {}, ANYCCL_SHRINK_ABORT);
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
  wait_until([&] { return round.has_grow_id.load(); });
  auto grown = Communicator().grow(ranks, &round.grow_id, Rank{ranks - 1});
  if (!grown.ok()) fail(grown.status());
  if (const Status status = reduce(*grown); !status.ok()) fail(status);
  std::_Exit(0);
}

/// Of the last rank: to each of kStages.
Times measure(int ranks) {
  const test::Shared<Round> shared;
  Round& round = *shared;
  std::vector<pid_t> processes;
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t pid = ::fork();
    if (pid == 0) run_rank(round, rank, ranks);
    processes.push_back(pid);
  }
  const pid_t new_process = ::fork();
  if (new_process == 0) run_new_rank(round, ranks);
  wait_until([&] { return round.meeting.joined == ranks; });
  let_calls_begin();
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
      most[i] = std::max(most[i], ms_between(round.killed, round.at[rank][i]));
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
  for (std::size_t k = 0; k < all.size(); ++k)
    std::printf("%d ranks, kill to %-12s %s, %d rounds\n", ranks, kStages[k],
                spread_of(all[k]).c_str(), rounds);
}
