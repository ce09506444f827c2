// Ping-pong of two ranks: PutSignal and WaitSignal against Send and Recv; and what a window costs a
// collective of its communicator.
//
//   put_signal [ROUNDS]     default: 20000
//
// Each rank has a core of its own. Prints, per size: half of a round trip in microseconds, the median of blocks of 100 and the fastest
// one, which is what counts on a machine that others use, too.

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "anyccl/window.hpp"
#include "must.hpp"

namespace {

using anyccl::Communicator, anyccl::Rank, anyccl::Status;
using Clock = std::chrono::steady_clock;

constexpr int kBlock = 100;

struct Time {
  double median, best;
};

/// Microseconds of one call of `turn`.
template <typename Turn>
Time measure(int rounds, const Turn& turn) {
  std::vector<double> times;
  for (int block = 0; block < rounds / kBlock; ++block) {
    const auto since = Clock::now();
    for (int i = 0; i < kBlock; ++i) turn();
    const std::chrono::duration<double, std::micro> time = Clock::now() - since;
    times.push_back(time.count() / kBlock);
  }
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], times[0]};
}

class Side {
 public:
  Side(Communicator& comm, int rounds)
      : comm_(comm.handle()), peer_(1 - index(comm.rank())), rounds_(rounds) {}

  Time messages(std::size_t bytes) {
    return halved(measure(rounds_for(bytes), [&] {
      if (peer_ == 1) send(bytes);
      if (anycclRecv(memory_.data(), bytes, anycclUint8, peer_, comm_, nullptr) != anycclSuccess)
        std::_Exit(1);
      if (peer_ == 0) send(bytes);
    }));
  }
  Time puts(std::size_t bytes, const anyccl::Window& window) {
    anycclWaitSignalDesc_t one{1, peer_, 0, 0};
    return halved(measure(rounds_for(bytes), [&] {
      if (peer_ == 1) put(bytes, window);
      if (anycclWaitSignal(1, &one, comm_, nullptr) != anycclSuccess) std::_Exit(1);
      if (peer_ == 0) put(bytes, window);
    }));
  }
  Time all_reduce() {
    return measure(rounds_, [&] {
      float x[2] = {1, 2};
      if (anycclAllReduce(x, x, 2, anycclFloat32, anycclSum, comm_, nullptr) != anycclSuccess)
        std::_Exit(1);
    });
  }
  std::vector<std::uint8_t>& memory() { return memory_; }

 private:
  int rounds_for(std::size_t bytes) const { return bytes > 10'000 ? rounds_ / 20 : rounds_; }
  static Time halved(Time time) { return {time.median / 2, time.best / 2}; }
  void send(std::size_t bytes) {
    if (anycclSend(mine_.data(), bytes, anycclUint8, peer_, comm_, nullptr) != anycclSuccess)
      std::_Exit(1);
  }
  void put(std::size_t bytes, const anyccl::Window& window) {
    if (anycclPutSignal(mine_.data(), bytes, anycclUint8, peer_, window.handle(), 0, 0, 0, 0, comm_,
                        nullptr) != anycclSuccess)
      std::_Exit(1);
  }

  anycclComm_t comm_;
  int peer_, rounds_;
  std::vector<std::uint8_t> memory_ = std::vector<std::uint8_t>(1 << 20), mine_ = memory_;
};

/// Rank r has core r, where there is one.
void bind_to_core(int rank) {
  cpu_set_t mine;
  CPU_ZERO(&mine);
  CPU_SET(static_cast<unsigned>(rank), &mine);
  static_cast<void>(::sched_setaffinity(0, sizeof mine, &mine));
}

void run(const anyccl::UniqueId& id, int rank, int rounds) {
  bind_to_core(rank);
  auto comm = Communicator::from_unique_id(id, Rank{rank}, 2);
  must(comm.status());
  Side side(*comm, rounds);
  const bool tells = rank == 0;
  constexpr std::size_t kSizes[] = {8, 1000, 8192, 1 << 20};
  std::vector<Time> messages;
  for (const std::size_t bytes : kSizes) messages.push_back(side.messages(bytes));
  const Time before = side.all_reduce();
  auto window = anyccl::Window::create(*comm, side.memory());
  must(window.status());
  if (tells) std::printf("# bytes   send us   (best)      put us   (best)\n");
  for (std::size_t i = 0; i < std::size(kSizes); ++i) {
    const Time put = side.puts(kSizes[i], *window);
    if (tells)
      std::printf("%8zu %9.3f %8.3f   %9.3f %8.3f\n", kSizes[i], messages[i].median,
                  messages[i].best, put.median, put.best);
  }
  const Time with = side.all_reduce();
  must(window->deregister());
  const Time after = side.all_reduce();
  if (tells)
    std::printf(
        "# all_reduce of 8 bytes: %.3f us (%.3f); with a window %.3f (%.3f); after it %.3f "
        "(%.3f)\n",
        before.median, before.best, with.median, with.best, after.median, after.best);
  must(comm->destroy());
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 20'000;
  if (rounds < 2000) {
    std::fprintf(stderr, "usage: put_signal [ROUNDS, at least 2000]\n");
    return 2;
  }
  const auto id = anyccl::UniqueId::create();
  must(id.status());
  if (::fork() == 0) return run(*id, 1, rounds), 0;
  run(*id, 0, rounds);
  int status = 0;
  ::wait(&status);
  return status == 0 ? 0 : 1;
}
