#pragma once

#include <cstdint>
#include <vector>

namespace anyccl::cli {

/// The summary of a set of times, in microseconds.
struct Summary {
  double median_us = 0, min_us = 0, p99_us = 0;
};

/// `times_ns` is not empty. Median: of an even number, the mean of the middle two. p99: the
/// smallest time that at least 99 % do not exceed.
Summary summarize(std::vector<std::int64_t> times_ns);

/// Returns the one of `values`, which are not empty, that is at `share` of their sorted order: 0 is
/// the smallest, 1 the largest. Does not interpolate.
double quantile(std::vector<double> values, double share);

}  // namespace anyccl::cli
