// What 64 small AllReduce calls cost in a group, which fuses them, and one after the other, by size.
// ANYCCL_TRANSPORT says over what. The two ways take turns; the medians are shown.
//
//   fusion [RANKS]     default: 2

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "anyccl/anyccl.hpp"

namespace {

using anyccl::Communicator, anyccl::Rank, anyccl::Status;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kCalls = 64;
constexpr int kRounds = 100, kTurns = 7;

void must(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  std::_Exit(1);
}

class Calls {
 public:
  Calls(Communicator& comm, std::size_t count)
      : comm_(comm), vectors_(kCalls, std::vector<float>(count)) {}

  /// Microseconds for all calls.
  double run(bool grouped) {
    must(comm_.barrier()->wait());
    const auto begin = Clock::now();
    for (int round = 0; round < kRounds; ++round) call(grouped);
    return std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / kRounds;
  }

 private:
  void call(bool grouped) {
    if (grouped) anycclGroupStart();
    for (std::vector<float>& x : vectors_)
      if (anycclAllReduce(x.data(), x.data(), x.size(), anycclFloat32, anycclSum, comm_.handle(),
                          nullptr) != anycclSuccess)
        must(comm_.failure());
    if (grouped && anycclGroupEnd() != anycclSuccess) must(comm_.failure());
  }

  Communicator& comm_;
  std::vector<std::vector<float>> vectors_;
};

double median(std::vector<double> times) {
  std::nth_element(times.begin(), times.begin() + static_cast<long>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

void measure(const anyccl::UniqueId& id, int rank, int ranks) {
  auto comm = Communicator::from_unique_id(id, Rank{rank}, ranks);
  must(comm.status());
  if (rank == 0) std::printf("#   bytes   group us  in turn us\n");
  for (const std::size_t bytes : {8U, 256U, 1024U, 4096U, 16384U}) {
    Calls calls(*comm, bytes / sizeof(float));
    std::vector<double> group, in_turn;
    for (int turn = 0; turn < kTurns; ++turn) {
      group.push_back(calls.run(true));
      in_turn.push_back(calls.run(false));
    }
    if (rank != 0) continue;
    std::printf("%9zu %10.1f %11.1f   x%.1f\n", bytes, median(group), median(in_turn),
                median(in_turn) / median(group));
    std::fflush(stdout);
  }
  must(comm->destroy());
}

}  // namespace

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 2;
  if (ranks < 1 || ranks > 64 || argc > 2) {
    std::fprintf(stderr, "usage: fusion [RANKS]\n");
    return 2;
  }
  const auto id = anyccl::UniqueId::create();
  must(id.status());
  for (int rank = 1; rank < ranks; ++rank)
    if (::fork() == 0) return measure(*id, rank, ranks), 0;
  measure(*id, 0, ranks);
  bool failed = false;
  for (int status = 0; ::wait(&status) > 0;) failed = failed || status != 0;
  return failed ? 1 : 0;
}
