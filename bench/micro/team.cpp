// One AllReduce inside a parallel region of each rank: by one thread while its team waits
// (anycclAllReduce), and by all of it (anycclAllReducePart), in turns. Both times include the
// barrier of the region, without which the result could not be used.
//
//   team [RANKS [THREADS [BATCHES]]]     default: 2 ranks of 1 thread, 61 batches
//
// Prints microseconds per call: median of the batches, and the middle half of them.

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "anyccl/anyccl.hpp"

namespace {

using anyccl::Communicator, anyccl::Rank, anyccl::ReduceOp, anyccl::Status, anyccl::view;

constexpr std::size_t kSizes[] = {8, 1 << 10, 8 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20};

struct Job {
  int ranks = 2, threads = 1, batches = 61;
  bool oversubscribed = false;
};

/// The barrier of one rank's threads; spins, as in engines whose threads have a core each.
class Barrier {
 public:
  explicit Barrier(const Job& job) : threads_(job.threads), oversubscribed_(job.oversubscribed) {}
  void meet() {
    const int round = round_.load(std::memory_order_relaxed);
    // Pairs with itself: the last thread has seen all earlier writes of the others.
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
      arrived_.store(0, std::memory_order_relaxed);
      round_.store(round + 1, std::memory_order_release);  // pairs with the acquire below
      return;
    }
    while (round_.load(std::memory_order_acquire) == round)
      if (oversubscribed_) ::sched_yield();
  }

 private:
  const int threads_;
  const bool oversubscribed_;
  alignas(64) std::atomic<int> arrived_{0};
  alignas(64) std::atomic<int> round_{0};
};

void must(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  std::_Exit(1);
}

struct Times {
  std::vector<double> us;
  double at(double part) {
    std::sort(us.begin(), us.end());
    return us[static_cast<std::size_t>(part * static_cast<double>(us.size() - 1))];
  }
};

/// The team of one rank at one size.
class Team {
 public:
  Team(Communicator& comm, const Job& job, std::size_t bytes)
      : comm_(comm), job_(job), barrier_(job), in_(bytes / 4, 1.0F), out_(bytes / 4) {}

  void work(int thread) {
    for (int batch = 0; batch < 2 * job_.batches; ++batch) {
      if (thread == 0)
        must(Status(static_cast<anyccl::Code>(anycclBarrier(comm_.handle(), nullptr)), ""));
      barrier_.meet();
      const auto since = std::chrono::steady_clock::now();
      for (int i = 0; i < calls(); ++i) batch % 2 == 0 ? alone(thread) : together(thread);
      const std::chrono::duration<double, std::micro> us = std::chrono::steady_clock::now() - since;
      if (thread == 0) times_[batch % 2].us.push_back(us.count() / calls());
    }
  }
  void print() {
    std::printf("%9zu", in_.size() * 4);
    for (Times& t : times_) std::printf("  %8.2f (%.2f..%.2f)", t.at(0.5), t.at(0.25), t.at(0.75));
    std::printf("  x%.2f\n", times_[0].at(0.5) / times_[1].at(0.5));
  }

 private:
  int calls() const { return in_.size() > 8192 ? 50 : 500; }
  void alone(int thread) {
    if (thread == 0 && anycclAllReduce(in_.data(), out_.data(), in_.size(), anycclFloat32,
                                       anycclSum, comm_.handle(), nullptr) != anycclSuccess)
      must(comm_.failure());
    barrier_.meet();
  }
  void together(int thread) {
    must(comm_.all_reduce_part(view(in_), view(out_), ReduceOp::sum, thread, job_.threads));
    barrier_.meet();
  }

  Communicator& comm_;
  const Job& job_;
  Barrier barrier_;
  std::vector<float> in_, out_;
  Times times_[2];
};

void measure(const Job& job, const anyccl::UniqueId& id, int rank) {
  auto comm = Communicator::from_unique_id(id, Rank{rank}, job.ranks);
  must(comm.status());
  must(comm->make_parts(job.threads));
  if (rank == 0)
    std::printf("# %d ranks of %d threads, us per call\n#  bytes  one thread  all threads\n",
                job.ranks, job.threads);
  for (const std::size_t bytes : kSizes) {
    Team team(*comm, job, bytes);
    {
      std::vector<std::jthread> others;
      for (int t = 1; t < job.threads; ++t) others.emplace_back([&team, t] { team.work(t); });
      team.work(0);
    }
    if (rank == 0) team.print();
  }
  must(comm->destroy());
}

}  // namespace

int main(int argc, char** argv) {
  Job job;
  if (argc > 1) job.ranks = std::atoi(argv[1]);
  if (argc > 2) job.threads = std::atoi(argv[2]);
  if (argc > 3) job.batches = std::atoi(argv[3]);
  if (job.ranks < 1 || job.threads < 1 || job.batches < 1) {
    std::fprintf(stderr, "usage: team [RANKS [THREADS [BATCHES]]]\n");
    return 2;
  }
  job.oversubscribed =
      job.ranks * job.threads > static_cast<int>(std::thread::hardware_concurrency());
  const auto id = anyccl::UniqueId::create();
  must(id.status());
  for (int rank = 1; rank < job.ranks; ++rank)
    if (::fork() == 0) return measure(job, *id, rank), 0;
  measure(job, *id, 0);
  bool failed = false;
  for (int status = 0; ::wait(&status) > 0;) failed |= status != 0;
  return failed ? 1 : 0;
}
