// What a wait costs: rank 1 computes for one step and then calls AllReduce (8 bytes); rank 0 waits
// for it. How late does rank 0 notice, and how much of a core did its wait take?
//
//   waits [MILLISECONDS [JITTER% [STEPS]]]     default: a table of steps, 0.3 %, 2 s of each
//
// ANYCCL_WAIT and ANYCCL_TRANSPORT say how it waits. Prints, per step: the median lateness and that
// of nine in ten, and the part of the time that rank 0 had a core.

#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "anyccl/anyccl.hpp"

namespace {

using anyccl::Communicator, anyccl::Rank, anyccl::Status;
using Clock = std::chrono::steady_clock;  // the same in all processes
using Milliseconds = std::chrono::duration<double, std::milli>;

struct Job {
  std::vector<double> steps{0.5, 1, 2, 5, 10, 20, 100};  // milliseconds
  double jitter = 0.003;
  int count = 0;
  std::atomic<Clock::rep>* arrival = nullptr;
};

void must(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  std::_Exit(1);
}

double cpu_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

class Side {
 public:
  Side(const Job& job, Communicator& comm, int rank) : job_(job), comm_(comm), rank_(rank) {}

  void run(double step) {
    const int count = job_.count > 0 ? job_.count : std::max(20, static_cast<int>(2000 / step));
    std::vector<double> late;
    const double cpu_before = cpu_seconds();
    const auto began = Clock::now();
    for (int i = 0; i < count; ++i) {
      if (rank_ == 1) compute(step);
      if (anycclAllReduce(in_, out_, 2, anycclFloat32, anycclSum, comm_.handle(), nullptr) !=
          anycclSuccess)
        must(comm_.failure());
      const Clock::time_point arrival{Clock::duration(job_.arrival->load())};
      if (rank_ == 0 && i > 0)
        late.push_back(std::chrono::duration<double, std::micro>(Clock::now() - arrival).count());
    }
    const double wall = std::chrono::duration<double>(Clock::now() - began).count();
    if (rank_ != 0) return;
    std::sort(late.begin(), late.end());
    std::printf("%8.1f %10.1f %10.1f %9.1f %%\n", step, late[late.size() / 2],
                late[late.size() * 9 / 10], 100 * (cpu_seconds() - cpu_before) / wall);
    std::fflush(stdout);
  }

 private:
  void compute(double step) {
    const Milliseconds length(step * spread_(random_));
    const auto until = Clock::now() + length;
    while (Clock::now() < until) {
    }
    job_.arrival->store(Clock::now().time_since_epoch().count());
  }

  const Job& job_;
  Communicator& comm_;
  const int rank_;
  std::mt19937 random_{1};
  std::uniform_real_distribution<double> spread_{1 - job_.jitter, 1 + job_.jitter};
  float in_[2] = {1, 2}, out_[2] = {};
};

void measure(const Job& job, const anyccl::UniqueId& id, int rank) {
  auto comm = Communicator::from_unique_id(id, Rank{rank}, 2);
  must(comm.status());
  if (rank == 0) std::printf("# step ms   late us      (90%%)       core\n");
  for (const double step : job.steps) Side(job, *comm, rank).run(step);
  must(comm->destroy());
}

}  // namespace

int main(int argc, char** argv) {
  Job job;
  if (argc > 1) job.steps = {std::atof(argv[1])};
  if (argc > 2) job.jitter = std::atof(argv[2]) / 100;
  if (argc > 3) job.count = std::atoi(argv[3]);
  if (job.steps[0] <= 0 || job.jitter < 0 || job.jitter >= 1 || job.count < 0 || job.count == 1) {
    std::fprintf(stderr, "usage: waits [MILLISECONDS [JITTER%% [STEPS]]]\n");
    return 2;
  }
  void* page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return 2;
  job.arrival = new (page) std::atomic<Clock::rep>(0);
  const auto id = anyccl::UniqueId::create();
  must(id.status());
  if (::fork() == 0) return measure(job, *id, 1), 0;
  measure(job, *id, 0);
  int status = 0;
  ::wait(&status);
  return status == 0 ? 0 : 1;
}
