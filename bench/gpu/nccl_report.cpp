// Prints what AllReduce of two processes on one GPU takes with a libnccl.so.2: NVIDIA's, or that of
// this library.
//   nccl_report LIBRARY      the path of the library; device 0

#include <dlfcn.h>
#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "micro/must.hpp"
#include "nccl.h"
#include "platform/device/devices.hpp"

namespace anyccl {
namespace {

/// The functions of the library that is measured.
class Nccl {
 public:
  explicit Nccl(const char* path) : library_(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
    if (library_ == nullptr) end(dlerror());
  }
  ncclUniqueId unique_id() const {
    ncclUniqueId id{};
    check(find<decltype(&ncclGetUniqueId)>("ncclGetUniqueId")(&id));
    return id;
  }
  ncclComm_t join(const ncclUniqueId& id, int rank) const {
    ncclComm_t comm = nullptr;
    check(find<decltype(&ncclCommInitRank)>("ncclCommInitRank")(&comm, 2, id, rank));
    return comm;
  }
  void all_reduce(void* x, std::size_t count, ncclComm_t comm, DeviceQueue queue) const {
    check(all_reduce_(x, x, count, ncclFloat32, ncclMax, comm,
                      reinterpret_cast<cudaStream_t>(queue)));
  }

 private:
  [[noreturn]] static void end(const char* why) {
    fmt::print(stderr, "nccl_report: {}\n", why);
    std::_Exit(1);
  }
  template <typename Function>
  Function find(const char* name) const {
    void* const found = dlsym(library_, name);
    if (found == nullptr) end(dlerror());
    return reinterpret_cast<Function>(found);
  }
  void check(ncclResult_t result) const {
    if (result != ncclSuccess)
      end(find<decltype(&ncclGetErrorString)>("ncclGetErrorString")(result));
  }

  void* const library_;
  const decltype(&ncclAllReduce) all_reduce_ = find<decltype(&ncclAllReduce)>("ncclAllReduce");
};

/// The median of calls that are waited for, after some that do not count.
double median_us(int calls, const std::function<void()>& call) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> all;
  for (int i = -3; i < calls; ++i) {
    const auto begin = Clock::now();
    call();
    const std::chrono::duration<double, std::micro> took = Clock::now() - begin;
    if (i >= 0) all.push_back(took.count());
  }
  std::nth_element(all.begin(), all.begin() + calls / 2, all.end());
  return all[static_cast<std::size_t>(calls / 2)];
}

/// The unique id goes from rank 0 to rank 1 through the pipe. Rank 0 prints.
void run_rank(int rank, const char* path, const int (&pipe_ends)[2]) {
  const auto device = must(open_device(0));
  const auto scope = must(DeviceScope::enter(*device));
  const Nccl nccl(path);
  ncclUniqueId id{};
  if (rank == 0) id = nccl.unique_id();
  const ssize_t moved =
      rank == 0 ? ::write(pipe_ends[1], &id, sizeof id) : ::read(pipe_ends[0], &id, sizeof id);
  if (moved != static_cast<ssize_t>(sizeof id)) std::_Exit(1);
  ncclComm_t const comm = nccl.join(id, rank);
  const DeviceQueue queue = must(device->make_queue(false));
  const DeviceMoment moment = must(device->make_moment());
  constexpr std::size_t kMiB = std::size_t{1} << 20;
  void* const x = must(device->allocate(64 * kMiB));
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{65536}, kMiB, 16 * kMiB, 64 * kMiB}) {
    const double us = median_us(bytes > kMiB ? 10 : 100, [&] {
      nccl.all_reduce(x, bytes / sizeof(float), comm, queue);
      must(device->record(queue, moment));
      while (!must(device->is_past(moment))) std::this_thread::yield();
    });
    if (rank == 0) fmt::print("  {:>12} bytes {:>12.1f} us\n", bytes, us);
  }
  std::fflush(stdout);
  std::_Exit(0);
}

int report(const char* path) {
  int pipe_ends[2];
  if (::pipe(pipe_ends) != 0) return 1;
  pid_t ranks[2];
  for (int rank = 0; rank < 2; ++rank) {
    ranks[rank] = ::fork();  // before any driver is loaded
    if (ranks[rank] == 0) run_rank(rank, path, pipe_ends);
  }
  int failed = 0;
  for (const pid_t rank : ranks) {
    int status = 0;
    ::waitpid(rank, &status, 0);
    failed |= status;
  }
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace anyccl

int main(int argc, char** argv) {
  if (argc == 2) return anyccl::report(argv[1]);
  fmt::print(stderr, "usage: nccl_report LIBRARY\n");
  return 2;
}
