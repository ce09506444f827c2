#include "calibrate/memory_rates.hpp"

#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <functional>
#include <thread>

#include "base/error.hpp"
#include "perf/memory.hpp"
#include "perf/statistics.hpp"
#include "platform/reduce/copy.hpp"
#include "platform/reduce/reduce.hpp"

namespace anyccl::cli {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kSmallest = std::size_t{32} << 10, kLargest = std::size_t{128} << 20;
/// Collectives copy in chunks of this order; the C library's copies of some MiB pass the caches by.
constexpr std::size_t kChunk = std::size_t{32} << 10;
constexpr std::size_t kOperands = 8;
constexpr std::size_t kAtOnce = std::size_t{8} << 20;  // bytes in one timing
constexpr double kLow = 0.1;                           // as of links

/// Copies one half to the other one, chunk by chunk.
void copy_half(std::byte* memory, std::size_t bytes) {
  const std::size_t half = bytes / 2, chunk = std::min(half, kChunk);
  for (std::size_t at = 0; at + chunk <= half; at += chunk)
    copy_bytes(memory + half + at, memory + at, chunk);
}

/// Adds up eight parts into one that stays in the nearest cache, again and again.
void read_all(ReduceFn reduce, std::byte* memory, std::size_t bytes, std::byte* sum) {
  const std::size_t part = std::min(bytes, 2 * kChunk) / kOperands;
  for (std::size_t at = 0; at + kOperands * part <= bytes; at += kOperands * part) {
    const void* operands[kOperands];
    for (std::size_t k = 0; k < kOperands; ++k) operands[k] = memory + at + k * part;
    reduce(sum, nullptr, operands, kOperands, part / sizeof(float));
  }
}

/// The mean time of one of `times` calls, in seconds.
double seconds_of(std::size_t times, const std::function<void()>& call) {
  const Clock::time_point start = Clock::now();
  for (std::size_t i = 0; i < times; ++i) call();
  return std::chrono::duration<double>(Clock::now() - start).count() / static_cast<double>(times);
}

/// Times copying and reading in one thread, in step with others. `memory` is kChunk larger than
/// `bytes`, for the sums.
WorkingSetTiming time_one(ReduceFn reduce, std::byte* memory, std::size_t bytes,
                          std::barrier<>& together) {
  std::byte* const sum = memory + bytes;  // as large as a part
  const std::size_t times = std::max<std::size_t>(1, kAtOnce / bytes);
  const int rounds = bytes > kAtOnce ? 8 : 20;
  std::vector<double> copies, reads;
  for (int i = 0; i <= rounds; ++i) {
    together.arrive_and_wait();
    const double copy_s = seconds_of(times, [&] { copy_half(memory, bytes); });
    together.arrive_and_wait();
    const double read_s = seconds_of(times, [&] { read_all(reduce, memory, bytes, sum); });
    if (i == 0) continue;  // cold
    copies.push_back(copy_s);
    reads.push_back(read_s);
  }
  const auto size = static_cast<double>(bytes);
  return {size, quantile(std::move(copies), kLow) / (size / 2),
          quantile(std::move(reads), kLow) / size};
}

/// All sizes, on the slowest of so many threads.
Result<std::vector<WorkingSetTiming>> time_all(ReduceFn reduce, int threads, std::size_t largest) {
  std::vector<Memory> memories;
  for (int i = 0; i < threads; ++i) {
    ANYCCL_TRY(Memory memory, Memory::allocate(largest + kChunk, false));
    memories.push_back(std::move(memory));
  }
  std::vector<WorkingSetTiming> slowest;
  for (std::size_t bytes = kSmallest; bytes <= largest; bytes *= 2) {
    std::barrier<> together(threads);
    std::vector<WorkingSetTiming> timings(memories.size());
    std::vector<std::thread> team;
    for (std::size_t i = 0; i < memories.size(); ++i)
      team.emplace_back([&, i] {
        timings[i] = time_one(reduce, static_cast<std::byte*>(memories[i].get()), bytes, together);
      });
    for (std::thread& thread : team) thread.join();
    WorkingSetTiming& worst = slowest.emplace_back(timings[0]);
    for (const WorkingSetTiming& t : timings) {
      worst.copy_s = std::max(worst.copy_s, t.copy_s);
      worst.read_s = std::max(worst.read_s, t.read_s);
    }
  }
  return slowest;
}

/// Bytes for each thread: together they take a quarter of the free memory at most.
std::size_t largest_for(int threads) {
  const long pages = ::sysconf(_SC_AVPHYS_PAGES), page = ::sysconf(_SC_PAGESIZE);
  const std::size_t free = pages > 0 && page > 0
                               ? static_cast<std::size_t>(pages) * static_cast<std::size_t>(page)
                               : kLargest;
  return std::clamp(free / 4 / static_cast<std::size_t>(threads), 2 * kSmallest, kLargest);
}

}  // namespace

std::vector<MemoryRate> rates_of(const std::vector<WorkingSetTiming>& timings) {
  std::vector<MemoryRate> rates(timings.size());
  double copy_s = 0, read_s = 0;
  for (std::size_t i = timings.size(); i-- > 0;) {
    const bool is_last = i + 1 == timings.size();
    copy_s = is_last ? timings[i].copy_s : std::min(copy_s, timings[i].copy_s);
    read_s = std::min(copy_s, is_last ? timings[i].read_s : std::min(read_s, timings[i].read_s));
    rates[i] = {timings[i].bytes, read_s, copy_s - read_s};
  }
  return rates;
}

Status measure_memory(Calibration& calibration) {
  ANYCCL_TRY(const ReduceFn reduce, reduce_kernel(DType::f32, ReduceOp::sum));
  const std::size_t largest = largest_for(calibration.cores);
  ANYCCL_TRY(const auto alone, time_all(reduce, 1, largest));
  ANYCCL_TRY(const auto shared, time_all(reduce, calibration.cores, largest));
  calibration.memory_alone = rates_of(alone);
  calibration.memory_shared = rates_of(shared);
  return {};
}

}  // namespace anyccl::cli
