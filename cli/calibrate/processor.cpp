#include "calibrate/processor.hpp"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "calibrate/memory_rates.hpp"
#include "perf/statistics.hpp"
#include "platform/probe/host_facts.hpp"
#include "platform/reduce/copy.hpp"
#include "platform/reduce/reduce.hpp"
#include "simulate/fit.hpp"

namespace anyccl::cli {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kMostOperands = 8;
constexpr std::size_t kCopied = 4 << 20;
constexpr int kTimes = 25;
constexpr double kLowTime = 0.1;  // a tenth of the times are shorter, as of links

/// Returns the time of one call, in seconds, that a tenth of the timings fall below. Each timing is
/// of `calls` calls.
double time_of(int calls, const std::function<void()>& call) {
  call();  // warm
  std::vector<double> seconds;
  for (int i = 0; i < kTimes; ++i) {
    const Clock::time_point start = Clock::now();
    for (int k = 0; k < calls; ++k) call();
    seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count() / calls);
  }
  return quantile(std::move(seconds), kLowTime);
}

Result<std::vector<Timing>> time_additions() {
  ANYCCL_TRY(const ReduceFn reduce, reduce_kernel(DType::f32, ReduceOp::sum));
  constexpr std::size_t kSizes[] = {16 << 10, 128 << 10, 1 << 20};
  const std::vector<float> memory(kMostOperands * (kSizes[2] / sizeof(float)), 1.0F);
  std::vector<float> sum(kSizes[2] / sizeof(float));
  std::vector<Timing> timings;
  for (const std::size_t bytes : kSizes)
    for (const std::size_t operands :
         {std::size_t{2}, std::size_t{3}, std::size_t{4}, kMostOperands}) {
      const std::size_t count = bytes / sizeof(float);
      std::vector<const void*> from;
      for (std::size_t k = 0; k < operands; ++k) from.push_back(memory.data() + k * count);
      const auto call = [&] { reduce(sum.data(), nullptr, from.data(), operands, count); };
      timings.push_back({static_cast<double>(bytes),
                         time_of(static_cast<int>((1 << 20) / bytes), call),
                         static_cast<double>(operands)});
    }
  return timings;
}

/// A copy of each of `threads` threads, which begin together, on the slowest of them, in seconds.
double time_copies(int threads) {
  std::barrier together(threads);
  std::vector<double> lows(static_cast<std::size_t>(threads));
  std::vector<std::thread> team;
  for (double& mine : lows)
    team.emplace_back([&] {
      const std::vector<char> from(kCopied, 1);
      std::vector<char> to(kCopied);
      std::vector<double> seconds;
      for (int i = 0; i < kTimes; ++i) {
        together.arrive_and_wait();
        const Clock::time_point start = Clock::now();
        copy_bytes(to.data(), from.data(), kCopied);
        seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
      }
      mine = quantile(std::move(seconds), kLowTime);
    });
  for (std::thread& thread : team) thread.join();
  return *std::max_element(lows.begin(), lows.end());
}

}  // namespace

Status measure_processor(Calibration& calibration) {
  ANYCCL_TRY(const std::vector<Timing> additions, time_additions());
  ANYCCL_CHECK(fit_additions(additions, calibration));
  calibration.cores = probe::host_facts().cores;
  constexpr auto kBytes = static_cast<double>(kCopied);
  calibration.copy_s = time_copies(1) / kBytes;
  calibration.memory_bytes_per_s = calibration.cores * kBytes / time_copies(calibration.cores);
  return measure_memory(calibration);
}

}  // namespace anyccl::cli
