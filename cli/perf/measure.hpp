#pragma once

#include <string>

#include "perf/comm.hpp"
#include "perf/options.hpp"
#include "perf/statistics.hpp"

namespace anyccl::cli {

/// The result of one case, equal on all ranks.
struct Measurement {
  Summary call = {};       ///< The slowest rank's in each call.
  double loop_us = 0;      ///< Mean of calls back to back, of the slowest rank; 0: not measured.
  std::int64_t wrong = 0;  ///< Elements, over all ranks and calls.
  std::string plan = {};   ///< As Comm::last_plan says.
};

/// Measures one case; collective over `comm`.
///
/// Each call is timed on every rank; a call's time is that of its slowest rank. Between the calls,
/// outside the timed part, inputs are rewritten and results read (Protocol::touch) and compared
/// (Protocol::check). There is no barrier between them, except right before a rooted operation.
/// The loop's calls, if the protocol has one, follow each other at once. `columns`: the number of
/// cases that share a row's time budget.
Result<Measurement> measure(const Operation& operation, Exercise& exercise,
                            const Protocol& protocol, bool in_place, int columns, const Comm& comm);

}  // namespace anyccl::cli
