#pragma once

#include <string>
#include <vector>

#include "perf/comm.hpp"
#include "simulate/fit.hpp"

namespace anyccl::cli {

/// A measured time with its spread. `seconds`, which constants are fitted to, is what a tenth of
/// the times fell below: what else the machine does makes times longer and never shorter.
struct SpreadTiming : Timing {
  double median_s = 0;
  double high_s = 0;  ///< A tenth of the times exceeded it.
};

/// What one class of links was seen to do.
struct LinkTimings {
  std::string link;                 ///< The transport.
  std::vector<SpreadTiming> pings;  ///< One way.
  double overhead_s = 0;            ///< One of many small messages of the same sender.
  /// The smallest ping while all pairs of the job do the same; 0: there was one pair.
  double all_at_once_s = 0;
};

/// Measures, as one rank of `comm`, the link between rank 0 and the first other rank of its host,
/// and the one between rank 0 and the first rank of another host; what there is not is left out.
/// Where all are on one host and are 4 or more, also how slow pairs are at once. All ranks call it;
/// only rank 0's result is complete. Errors: those of the calls.
Result<std::vector<LinkTimings>> measure_links(const Comm& comm);

/// Measures small messages between ranks 0 and 1, 2 and 3 and so on, all pairs at once; all ranks
/// call it. The result has only `link` and `all_at_once_s`, of this rank's pair, and nothing for
/// a last rank without a partner. Errors: those of the calls.
Result<LinkTimings> measure_all_pairs(const Comm& comm);

/// A file of them, from one process to another.
Status write_timings(const std::string& file, const std::vector<LinkTimings>& timings);
/// Errors: those of reading, system_error for no array. Throws nlohmann::json::exception for rows
/// that write_timings() would not write.
Result<std::vector<LinkTimings>> read_timings(const std::string& file);

}  // namespace anyccl::cli
