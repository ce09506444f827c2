#pragma once

#include <string>
#include <vector>

#include "algorithm/catalog/algorithm.hpp"
#include "perf/comm.hpp"
#include "perf/report.hpp"

namespace anyccl::cli {

/// The request to `anyccl tune`, the same on all ranks.
struct TuneOptions {
  std::vector<const Operation*> operations = {};
  std::vector<std::size_t> sizes = {};  ///< Ascending, in bytes of the buffer, as `anyccl perf`.
  std::vector<int> ranks = {};          ///< Ascending: there is one job for each.
  double seconds = 0;                   ///< For all of them.
  /// All algorithms count, not the fastest alone: none is left out, and each turn begins with a
  /// call that is not timed.
  bool compares_all = false;
};

/// A place of comparison: a collective with `count` elements (as in Case::count).
struct TunerCell {
  const Operation* operation = nullptr;
  std::size_t count = 0;
};
/// The cells of the job with `ranks` ranks, small ones first: those with several algorithms to
/// choose from.
std::vector<TunerCell> cells_of(const TuneOptions& options, int ranks);
/// The algorithms that support it.
std::vector<const Algorithm*> candidates_of(const Operation& operation, int ranks);

/// Measures all cells of this job as one rank of `comm`, within its share of the seconds; rank 0
/// shows the progress. Returns a row per cell and algorithm, without the cells for which there
/// was no time. Errors: those of the calls; internal when a result was wrong.
///
/// All algorithms of all cells take turns, again and again, so that a disturbance of the machine
/// meets them all; the median over at least three turns counts. An algorithm that was more
/// than twice as slow as the best in every turn gets no more turns, unless `compares_all`.
Result<std::vector<Row>> tune(const TuneOptions& options, const Comm& comm);

}  // namespace anyccl::cli
