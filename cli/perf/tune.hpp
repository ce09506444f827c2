#pragma once

#include <string>
#include <vector>

#include "algorithm/catalog/algorithm.hpp"
#include "perf/comm.hpp"
#include "perf/report.hpp"

namespace anyccl::cli {

/// What `anyccl tune` was asked for, the same on all ranks.
struct TuneOptions {
  std::vector<const Operation*> operations = {};
  std::vector<std::size_t> sizes = {};  ///< Ascending, in bytes of the buffer, as `anyccl perf`.
  std::vector<int> ranks = {};          ///< Ascending: there is one job for each.
  double seconds = 0;                   ///< For all of them.
};

/// Where algorithms are compared: a collective with so many elements (perf::Case::count).
struct TunerCell {
  const Operation* operation = nullptr;
  std::size_t count = 0;
};
/// All cells of the job with so many ranks, small ones first.
std::vector<TunerCell> cells_of(const TuneOptions& options, int ranks);
/// The algorithms that can do it.
std::vector<const Algorithm*> candidates_of(const Operation& operation, int ranks);

/// Measures all cells of this job as one rank of `comm`, within its share of the seconds; rank 0
/// shows how far it is. Returns a row per cell and algorithm, without the cells for which there
/// was no time. Errors: those of the calls; internal when a result was wrong.
///
/// All algorithms of all cells take turns, again and again, so that what disturbs the machine for
/// a while disturbs them all; the median over the turns counts, of which there must be three. One
/// that never was less than twice as slow as the best gets no more turns.
Result<std::vector<Row>> tune(const TuneOptions& options, const Comm& comm);

}  // namespace anyccl::cli
