// What the whole library adds to the bare kernel: an 8-byte AllReduce of two processes through
// anycclAllReduce, and the same exchange as a hand-written loop over two cache lines each, in
// turns.
//
//   api_overhead [BATCHES]     prints medians and the difference in ns; 1000 calls per batch

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "anyccl/anyccl.h"

namespace {

constexpr int kCalls = 1000;

struct alignas(64) Line {
  float data[14];
  std::atomic<std::uint64_t> sequence;
};
struct Shared {
  std::array<std::array<Line, 2>, 2> lines;  // [rank][bank]
  alignas(128) std::array<std::atomic<int>, 2> ready;
};

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

void by_hand(Shared& shared, int me, std::uint64_t epoch, const float* in, float* out) {
  Line& mine = shared.lines[static_cast<std::size_t>(me)][epoch % 2];
  const Line& theirs = shared.lines[static_cast<std::size_t>(1 - me)][epoch % 2];
  std::memcpy(mine.data, in, 8);
  mine.sequence.store(epoch, std::memory_order_release);
  while (theirs.sequence.load(std::memory_order_acquire) != epoch) relax();
  out[0] = in[0] + theirs.data[0];
  out[1] = in[1] + theirs.data[1];
  __builtin_prefetch(&shared.lines[static_cast<std::size_t>(me)][(epoch + 1) % 2], 1);
}

void meet(Shared& shared, int me, int round) {
  shared.ready[static_cast<std::size_t>(me)].store(round);
  while (shared.ready[static_cast<std::size_t>(1 - me)].load() < round) relax();
}

double ns_per_call(std::chrono::steady_clock::time_point since) {
  const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - since;
  return time.count() / kCalls;
}

double median(std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

int measure(int me, const anycclUniqueId& id, Shared& shared, int batches) {
  anycclComm_t comm = nullptr;
  if (anycclCommInitRank(&comm, 2, id, me) != anycclSuccess) {
    std::fprintf(stderr, "rank %d: %s\n", me, anycclGetLastError(nullptr));
    return 1;
  }
  float in[2] = {1.0F, 2.0F}, out[2] = {};
  std::vector<double> bare, library;
  std::uint64_t epoch = 0;
  for (int batch = 0; batch < batches; ++batch) {
    meet(shared, me, 2 * batch + 1);
    auto since = std::chrono::steady_clock::now();
    for (int i = 0; i < kCalls; ++i) by_hand(shared, me, ++epoch, in, out);
    bare.push_back(ns_per_call(since));
    meet(shared, me, 2 * batch + 2);
    since = std::chrono::steady_clock::now();
    for (int i = 0; i < kCalls; ++i)
      if (anycclAllReduce(in, out, 2, anycclFloat32, anycclSum, comm, nullptr) != anycclSuccess)
        return 1;
    library.push_back(ns_per_call(since));
  }
  if (me == 0) {
    const double a = median(bare), b = median(library);
    std::printf(
        "8 B AllReduce, 2 ranks, loop, median of %d batches (fastest tenth): by hand %.0f ns "
        "(%.0f), "
        "anycclAllReduce %.0f ns (%.0f), difference %.0f ns (%.0f)\n",
        batches, a, bare[bare.size() / 10], b, library[library.size() / 10], b - a,
        library[library.size() / 10] - bare[bare.size() / 10]);
  }
  return anycclCommDestroy(comm) == anycclSuccess ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const int batches = argc > 1 ? std::atoi(argv[1]) : 301;
  void* memory =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED || batches < 1) return 2;
  auto& shared = *new (memory) Shared;
  anycclUniqueId id;
  if (anycclGetUniqueId(&id) != anycclSuccess) return 2;
  const pid_t child = ::fork();
  if (child == 0) std::_Exit(measure(1, id, shared, batches));
  const int mine = measure(0, id, shared, batches);
  int status = 0;
  ::waitpid(child, &status, 0);
  return mine != 0 || status != 0 ? 1 : 0;
}
