#include "simulate/simgrid.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/error.hpp"
#include "base/unique_fd.hpp"

namespace anyccl::cli {

namespace {

/// Numbers through a pipe.
bool write_all(int fd, const std::vector<double>& numbers) {
  const auto* from = reinterpret_cast<const char*>(numbers.data());
  std::size_t left = numbers.size() * sizeof(double);
  while (left > 0) {
    const ssize_t n = ::write(fd, from, left);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    from += n;
    left -= static_cast<std::size_t>(n);
  }
  return true;
}

std::vector<double> read_all(int fd) {
  std::vector<char> bytes;
  char some[4096];
  ssize_t n = 0;
  do {
    n = ::read(fd, some, sizeof some);
    if (n > 0) bytes.insert(bytes.end(), some, some + n);
  } while (n > 0 || (n < 0 && errno == EINTR));
  std::vector<double> numbers(bytes.size() / sizeof(double));
  std::copy_n(bytes.data(), numbers.size() * sizeof(double),
              reinterpret_cast<char*>(numbers.data()));
  return numbers;
}

bool write_result(int fd, bool complete, const ReplayResult& result) {
  std::vector<double> numbers = {complete ? 1.0 : 0.0, result.seconds,
                                 static_cast<double>(result.messages)};
  numbers.insert(numbers.end(), result.done.begin(), result.done.end());
  return write_all(fd, numbers);
}

/// It stays open until the process ends.
Result<SimGridRun*> open_module() {
  void* const module = ::dlopen("anyccl_simgrid.so", RTLD_NOW | RTLD_LOCAL);
  void* const run = module == nullptr ? nullptr : ::dlsym(module, "anyccl_run_simgrid");
  if (run != nullptr) return reinterpret_cast<SimGridRun*>(run);
  return error(Code::unsupported,
               "--engine simgrid needs a module of a build with SimGrid: install libsimgrid-dev "
               "(Debian), and build with -DANYCCL_WITH_SIMGRID=ON ({})",
               ::dlerror());
}

}  // namespace

Result<ReplayResult> replay_by_simgrid(const RankPrograms& programs, const Network& network,
                                       const Machine& machine, double bytes,
                                       const std::vector<std::uint32_t>& place) {
  if (programs.ranks() > kMostSimGridRanks)
    return error(Code::invalid_argument, "--engine simgrid takes at most {} ranks, not {}",
                 kMostSimGridRanks, programs.ranks());
  if (machine.calibration != nullptr)
    return error(Code::invalid_argument, "--engine simgrid has no cores: leave --model out");
  const Result<SimGridRun*> run = open_module();
  if (!run.ok()) return run.status();
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return system_error(errno, "create a pipe");
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) return system_error(errno, "start a process for SimGrid");
  if (child == 0) {
    ReplayResult result;
    const bool complete = (*run)(programs, network, machine, bytes, place, result);
    ::_exit(write_result(writer.get(), complete, result) ? 0 : 1);
  }
  writer.reset();
  const std::vector<double> numbers = read_all(reader.get());
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (status != 0 || numbers.size() != 3 + programs.ranks())
    return error(Code::internal, "SimGrid ended with status {:#x}", status);
  if (numbers[0] == 0)
    return error(Code::internal, "SimGrid delivered {} of {} messages", numbers[2],
                 programs.messages());
  ReplayResult result;
  result.seconds = numbers[1];
  result.messages = static_cast<std::uint64_t>(numbers[2]);
  result.done.assign(numbers.begin() + 3, numbers.end());
  return result;
}

}  // namespace anyccl::cli
