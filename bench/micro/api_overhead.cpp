// The overhead of the whole library over a bare loop: an 8-byte AllReduce by anycclAllReduce, and
// the same exchange as a hand-written loop over shared cache lines or one TCP connection, in turns.
// With more ranks than cores the hand-written loop yields after every look, as a good one must.
//
//   api_overhead [RANKS [shm|tcp [BATCHES]]]     default: 2 shm 301; tcp is for 2 ranks
//
// Prints the median and fastest tenth of the batches (1000 calls each), and the difference.

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "anyccl/anyccl.h"

namespace {

constexpr int kCalls = 1000, kMostRanks = 64;

struct alignas(64) Line {
  float data[14];
  std::atomic<std::uint64_t> sequence;
};
struct Shared {
  std::array<std::array<Line, kMostRanks>, 2> lines;  // [bank][rank]
  alignas(128) std::array<std::atomic<int>, kMostRanks> ready;
};
struct Job {
  int ranks = 2, batches = 301;
  bool tcp = false;
  int me = 0, socket = -1;
  Shared* shared = nullptr;
  std::uint64_t epoch = 0;
  bool oversubscribed = false;
};

void relax(bool oversubscribed) {
  if (oversubscribed) {
    ::sched_yield();
    return;
  }
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

void by_hand_in_memory(Job& job, const float* in, float* out) {
  auto& bank = job.shared->lines[++job.epoch % 2];
  Line& mine = bank[static_cast<std::size_t>(job.me)];
  std::memcpy(mine.data, in, 8);
  mine.sequence.store(job.epoch, std::memory_order_release);
  float sum[2] = {};
  for (int r = 0; r < job.ranks; ++r) {
    const Line& line = bank[static_cast<std::size_t>(r)];
    while (line.sequence.load(std::memory_order_acquire) != job.epoch) relax(job.oversubscribed);
    sum[0] += line.data[0];
    sum[1] += line.data[1];
  }
  std::memcpy(out, sum, sizeof sum);
  __builtin_prefetch(&job.shared->lines[(job.epoch + 1) % 2][static_cast<std::size_t>(job.me)], 1);
}

void by_hand_over_tcp(Job& job, const float* in, float* out) {
  if (::send(job.socket, in, 8, MSG_NOSIGNAL | MSG_DONTWAIT) != 8) std::_Exit(3);
  float theirs[2];
  for (std::size_t got = 0; got < 8;) {
    const ssize_t n =
        ::recv(job.socket, reinterpret_cast<char*>(theirs) + got, 8 - got, MSG_DONTWAIT);
    if (n == 0) std::_Exit(3);
    if (n > 0) got += static_cast<std::size_t>(n);
  }
  for (int i = 0; i < 2; ++i) out[i] = in[i] + theirs[i];
}

void meet(Job& job, int round) {
  job.shared->ready[static_cast<std::size_t>(job.me)].store(round);
  for (int r = 0; r < job.ranks; ++r)
    while (job.shared->ready[static_cast<std::size_t>(r)].load() < round) relax(job.oversubscribed);
}

/// ns per call of a batch that all ranks start together.
template <typename Call>
double time_batch(Job& job, int round, const Call& call) {
  meet(job, round);
  const auto since = std::chrono::steady_clock::now();
  for (int i = 0; i < kCalls; ++i) call();
  const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - since;
  return time.count() / kCalls;
}

void print(const Job& job, std::vector<double> bare, std::vector<double> library) {
  std::sort(bare.begin(), bare.end());
  std::sort(library.begin(), library.end());
  const double a = bare[bare.size() / 2], b = library[library.size() / 2];
  const double a10 = bare[bare.size() / 10], b10 = library[library.size() / 10];
  std::printf(
      "8 B AllReduce, %d ranks, %s, loop, median of %d batches (fastest tenth): by hand %.0f ns "
      "(%.0f), anycclAllReduce %.0f ns (%.0f), difference %.0f ns (%.0f), x%.2f\n",
      job.ranks, job.tcp ? "tcp" : "shm", job.batches, a, a10, b, b10, b - a, b10 - a10, b / a);
}

int measure(Job& job, const anycclUniqueId& id) {
  anycclComm_t comm = nullptr;
  if (anycclCommInitRank(&comm, job.ranks, id, job.me) != anycclSuccess) {
    std::fprintf(stderr, "rank %d: %s\n", job.me, anycclGetLastError(nullptr));
    return 1;
  }
  float in[2] = {1.0F, 2.0F}, out[2] = {};
  std::vector<double> bare, library;
  bool failed = false;
  for (int batch = 0; batch < job.batches && !failed; ++batch) {
    bare.push_back(time_batch(job, 2 * batch + 1, [&] {
      job.tcp ? by_hand_over_tcp(job, in, out) : by_hand_in_memory(job, in, out);
    }));
    library.push_back(time_batch(job, 2 * batch + 2, [&] {
      failed |=
          anycclAllReduce(in, out, 2, anycclFloat32, anycclSum, comm, nullptr) != anycclSuccess;
    }));
  }
  if (failed) std::fprintf(stderr, "rank %d: %s\n", job.me, anycclGetLastError(comm));
  if (job.me == 0 && !failed) print(job, std::move(bare), std::move(library));
  return anycclCommDestroy(comm) == anycclSuccess && !failed ? 0 : 1;
}

/// A listening socket on the loopback; the two ranks connect over it.
int listen_here(sockaddr_in& address) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* where = reinterpret_cast<sockaddr*>(&address);
  const bool done = ::bind(listener, where, length) == 0 && ::listen(listener, 1) == 0 &&
                    ::getsockname(listener, where, &length) == 0;
  return done ? listener : -1;
}

void connect_by_hand(Job& job, int listener, const sockaddr_in& address) {
  if (job.me == 1) {
    job.socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::connect(job.socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      std::_Exit(3);
  } else {
    job.socket = ::accept(listener, nullptr, nullptr);
  }
  const int one = 1;
  ::setsockopt(job.socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  ::setsockopt(job.socket, IPPROTO_TCP, TCP_CONGESTION, "cubic", 5);
}

}  // namespace

int main(int argc, char** argv) {
  Job job;
  if (argc > 1) job.ranks = std::atoi(argv[1]);
  if (argc > 2) job.tcp = std::string(argv[2]) == "tcp";
  if (argc > 3) job.batches = std::atoi(argv[3]);
  if (job.ranks < 2 || job.ranks > kMostRanks || job.batches < 1 || (job.tcp && job.ranks != 2)) {
    std::fprintf(stderr, "usage: api_overhead [RANKS [shm|tcp [BATCHES]]], tcp for 2 ranks\n");
    return 2;
  }
  job.oversubscribed = job.ranks > static_cast<int>(std::thread::hardware_concurrency());
  void* memory =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 2;
  job.shared = new (memory) Shared;
  sockaddr_in address{};
  const int listener = job.tcp ? listen_here(address) : -1;
  if (job.tcp) ::setenv("ANYCCL_TRANSPORT", "tcp", 1);
  anycclUniqueId id;
  if (anycclGetUniqueId(&id) != anycclSuccess) return 2;
  std::vector<pid_t> children;
  for (int r = 1; r < job.ranks; ++r) {
    children.push_back(::fork());
    if (children.back() != 0) continue;
    job.me = r;
    if (job.tcp) connect_by_hand(job, listener, address);
    std::_Exit(measure(job, id));
  }
  if (job.tcp) connect_by_hand(job, listener, address);
  bool failed = measure(job, id) != 0;
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    failed |= status != 0;
  }
  return failed ? 1 : 0;
}
