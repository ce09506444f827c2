// How long abort() takes while a rank is as it should be, was killed, or is stopped, and the others wait in
// an AllReduce of 4 MiB. Ranks are processes of this host.
//   abort [RANKS [ROUNDS]]    ANYCCL_TRANSPORT chooses what connects them
// Prints the median, lowest and highest of all rounds: of the call, and until the AllReduce of the rank that
// made it has ended.

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "anyccl/anyccl.hpp"

namespace {

using anyccl::Communicator, anyccl::Rank, anyccl::ReduceOp, anyccl::Status, anyccl::view;
using Clock = std::chrono::steady_clock;

constexpr int kMostRanks = 64;
constexpr const char* kFaults[] = {"calls nothing", "was killed", "is stopped"};

/// What the processes of a round share.
struct Round {
  anyccl::UniqueId id;
  std::atomic<bool> has_id{false};
  std::atomic<int> joined{0};
  std::atomic<bool> is_over{false};
  double abort_ms = 0, ended_ms = 0;
};

[[noreturn]] void fail(const Status& why) {
  std::fprintf(stderr, "%s\n", std::string(why.message()).c_str());
  std::_Exit(1);
}

double ms_since(Clock::time_point since) {
  return std::chrono::duration<double, std::milli>(Clock::now() - since).count();
}

/// Rank 0 aborts while it waits in a call, the last one is the faulty one.
void run_rank(Round& round, int rank, int ranks) {
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
  std::vector<float> x(1 << 20, 1.0F);
  const auto reduce = [&] {
    auto work = comm->all_reduce(view(x), view(x), ReduceOp::sum);
    return work.ok() ? work->wait() : work.status();
  };
  if (rank == ranks - 1)
    while (!round.is_over) ::usleep(100);  // the same
  else if (rank != 0)
    static_cast<void>(reduce());
  if (rank != 0) return;
  Clock::time_point ended;
  std::thread waiting([&] {
    static_cast<void>(reduce());
    ended = Clock::now();
  });
  while (round.joined <= ranks) ::usleep(100);  // the same
  const auto since = Clock::now();
  const Status status = comm->abort();
  round.abort_ms = ms_since(since);
  if (!status.ok()) fail(status);
  waiting.join();
  round.ended_ms = std::chrono::duration<double, std::milli>(ended - since).count();
  round.is_over = true;
}

/// Of the call, and of what it ended.
std::pair<double, double> measure(int ranks, int fault) {
  void* const shared =
      ::mmap(nullptr, sizeof(Round), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) std::exit(1);
  auto& round = *new (shared) Round;
  std::vector<pid_t> processes;
  for (int rank = 0; rank < ranks; ++rank) {
    processes.push_back(::fork());
    if (processes.back() != 0) continue;
    run_rank(round, rank, ranks);
    std::_Exit(0);
  }
  while (round.joined < ranks) ::usleep(1000);  // the same
  if (fault == 2) ::kill(processes.back(), SIGSTOP);
  ::usleep(50'000);  // so that the others wait
  // A death would end the calls before the abort does.
  if (fault == 1) ::kill(processes.back(), SIGKILL);
  ++round.joined;
  int status = 0;
  ::waitpid(processes[0], &status, 0);
  if (status != 0) std::exit(1);
  for (const pid_t process : processes) ::kill(process, SIGKILL);
  for (std::size_t i = 1; i < processes.size(); ++i) ::waitpid(processes[i], nullptr, 0);
  const std::pair<double, double> times{round.abort_ms, round.ended_ms};
  ::munmap(shared, sizeof(Round));
  return times;
}

std::string text_of(std::vector<double>& ms) {
  std::sort(ms.begin(), ms.end());
  char text[64];
  std::snprintf(text, sizeof text, "%.2f ms (%.2f to %.2f)", ms[ms.size() / 2], ms.front(),
                ms.back());
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 8, rounds = argc > 2 ? std::atoi(argv[2]) : 20;
  if (ranks < 2 || ranks > kMostRanks || rounds < 1) return 2;
  for (int fault = 0; fault < 3; ++fault) {
    std::vector<double> aborts, ends;
    for (int i = 0; i < rounds; ++i) {
      const auto [abort, end] = measure(ranks, fault);
      aborts.push_back(abort);
      ends.push_back(end);
    }
    std::printf("%d ranks, one %-13s: abort %s, the call ends after %s, %d rounds\n", ranks,
                kFaults[fault], text_of(aborts).c_str(), text_of(ends).c_str(), rounds);
  }
}
