// How long abort() takes while a rank is as it should be, was killed, or is stopped, and the others wait in
// an AllReduce of 4 MiB. Ranks are processes of this host.
//   abort [RANKS [ROUNDS]]    ANYCCL_TRANSPORT chooses what connects them
// Prints the median, lowest and highest of all rounds: of the call, and until the AllReduce of the rank that
// made it has ended.

#include <sys/wait.h>

#include <csignal>
#include <thread>
#include <utility>
#include <vector>

#include "processes.hpp"

namespace {

using namespace anyccl;
using namespace anyccl::bench;

constexpr int kMostRanks = 64;
enum Fault { calls_nothing, was_killed, is_stopped };
constexpr const char* kFaults[] = {"calls nothing", "was killed", "is stopped"};

/// What the processes of a round share.
struct Round {
  Meeting meeting;
  std::atomic<bool> may_abort{false}, is_over{false};
  double abort_ms = 0, ended_ms = 0;
};

/// Rank 0, while another of its threads waits in a call.
void abort_in_time(Round& round, Communicator& comm, std::vector<float>& x) {
  Clock::time_point ended;
  std::thread waiting([&] {
    static_cast<void>(reduce(comm, x));
    ended = Clock::now();
  });
  wait_until([&] { return round.may_abort.load(); });
  const auto since = Clock::now();
  const Status status = comm.abort();
  round.abort_ms = ms_between(since, Clock::now());
  if (!status.ok()) fail(status);
  waiting.join();
  round.ended_ms = ms_between(since, ended);
  round.is_over = true;
}

/// The last rank is the faulty one.
[[noreturn]] void run_rank(Round& round, int rank, int ranks) {
  Communicator comm = round.meeting.join(rank, ranks);
  std::vector<float> x(1 << 20, 1.0F);
  if (rank == 0)
    abort_in_time(round, comm, x);
  else if (rank < ranks - 1)
    static_cast<void>(reduce(comm, x));
  else
    wait_until([&] { return round.is_over.load(); });
  std::_Exit(0);
}

/// Of the call, and of what it ended.
std::pair<double, double> measure(int ranks, Fault fault) {
  const test::Shared<Round> round;
  std::vector<pid_t> processes;
  for (int rank = 0; rank < ranks; ++rank) {
    processes.push_back(::fork());
    if (processes.back() == 0) run_rank(*round, rank, ranks);
  }
  wait_until([&] { return round->meeting.joined == ranks; });
  if (fault == is_stopped) ::kill(processes.back(), SIGSTOP);
  let_calls_begin();
  // Now, as the death alone ends the calls, too.
  if (fault == was_killed) ::kill(processes.back(), SIGKILL);
  round->may_abort = true;
  int status = 0;
  ::waitpid(processes[0], &status, 0);
  if (status != 0) std::exit(1);
  for (std::size_t i = 1; i < processes.size(); ++i) {
    ::kill(processes[i], SIGKILL);
    ::waitpid(processes[i], nullptr, 0);
  }
  return {round->abort_ms, round->ended_ms};
}

}  // namespace

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 8, rounds = argc > 2 ? std::atoi(argv[2]) : 20;
  if (ranks < 2 || ranks > kMostRanks || rounds < 1) return 2;
  for (const Fault fault : {calls_nothing, was_killed, is_stopped}) {
    std::vector<double> aborts, ends;
    for (int i = 0; i < rounds; ++i) {
      const auto [abort, end] = measure(ranks, fault);
      aborts.push_back(abort);
      ends.push_back(end);
    }
    std::printf("%d ranks, one %-13s: abort %s, the call ends after %s, %d rounds\n", ranks,
                kFaults[fault], spread_of(aborts).c_str(), spread_of(ends).c_str(), rounds);
  }
}
