// The limits of this machine for any library: the time of a cache line from one core to another,
// and the rate at which the cores copy memory.
//   limits BYTES...      prints: "line" 0 us one way; then, for each size, "copy" bytes GB/s, of
//   all cores together, each from one buffer of its own to another
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <atomic>
#include <cstring>
#include <numeric>
#include <thread>

#include "cores.hpp"
#include "measure.hpp"

namespace {

using peers::now_us;

/// Runs `work(i)` on each of `on`, all at once.
void on_cores(const std::vector<int>& on, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> ready{0};
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < on.size(); ++i)
    threads.emplace_back([&, i] {
      peers::pin(on[i]);
      ++ready;
      while (ready.load() < on.size()) {
      }
      work(i);
    });
  for (std::thread& thread : threads) thread.join();
}

/// Half a round trip of one line between two cores, at best.
double one_way_us(int first, int second) {
  constexpr int kTrips = 2000, kRepetitions = 50;
  alignas(128) std::atomic<int> line{0};
  double best = 1e9;
  on_cores({first, second}, [&](std::size_t me) {
    for (int r = 0; r < kRepetitions; ++r) {
      const double start = now_us();
      for (int i = 0; i < kTrips; ++i) {
        const int turn = 2 * (r * kTrips + i) + static_cast<int>(me);
        // Pairs with the store of the other core: whose turn it is.
        while (line.load(std::memory_order_acquire) != turn) {
        }
        line.store(turn + 1, std::memory_order_release);
      }
      if (me == 0) best = std::min(best, (now_us() - start) / kTrips / 2);
    }
  });
  return best;
}

using Copy = void (*)(float* to, const float* from, std::size_t bytes);

void copy_through_caches(float* to, const float* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}

/// Does not read the memory it overwrites, as memcpy does below sizes of its own choice.
void copy_past_caches(float* to, const float* from, std::size_t bytes) {
#ifdef __SSE2__
  for (std::size_t i = 0; i < bytes / sizeof(float); i += 4)
    _mm_stream_ps(to + i, _mm_load_ps(from + i));
  _mm_sfence();
#else
  copy_through_caches(to, from, bytes);
#endif
}

/// Bytes per nanosecond that this core copies at best.
double copy_rate(std::size_t bytes, Copy copy) {
  constexpr double kBudget_us = 50e3;
  constexpr std::size_t kTimed = 1 << 20;
  const peers::Buffer from(bytes / sizeof(float), 1), to(bytes / sizeof(float), 0);
  double best = 0;
  for (const double end = now_us() + kBudget_us; now_us() < end;) {
    const double start = now_us();
    std::size_t copied = 0;
    for (; copied < kTimed; copied += bytes) {
      copy(to.data(), from.data(), bytes);
      asm volatile("" ::: "memory");  // each of the copies counts
    }
    best = std::max(best, static_cast<double>(copied) / (now_us() - start) / 1e3);
  }
  return best;
}

double copy_rate_of_all(const std::vector<int>& on, std::size_t bytes, Copy copy) {
  std::vector<double> rates(on.size());
  on_cores(on, [&](std::size_t me) { rates[me] = copy_rate(bytes, copy); });
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<int> all = peers::cores();
  if (all.size() > 1) std::printf("line\t0\t%.4f\n", one_way_us(all[0], all[1]));
  for (int i = 1; i < argc; ++i) {
    const std::size_t bytes = std::strtoull(argv[i], nullptr, 10);
    const double rate = std::max(copy_rate_of_all(all, bytes, copy_through_caches),
                                 copy_rate_of_all(all, bytes, copy_past_caches));
    std::printf("copy\t%zu\t%.3f\n", bytes, rate);
  }
}
