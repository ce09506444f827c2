#include "perf/statistics.hpp"

#include <algorithm>

namespace anyccl::cli {

Summary summarize(std::vector<std::int64_t> times_ns) {
  std::sort(times_ns.begin(), times_ns.end());
  const auto us = [&](std::size_t i) { return static_cast<double>(times_ns[i]) / 1e3; };
  const std::size_t n = times_ns.size();
  const std::size_t p99 = (n * 99 + 99) / 100 - 1;  // ceil(0.99 n), counted from 0
  return {(us((n - 1) / 2) + us(n / 2)) / 2, us(0), us(p99)};
}

double quantile(std::vector<double> values, double share) {
  const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<std::size_t>(at)];
}

}  // namespace anyccl::cli
