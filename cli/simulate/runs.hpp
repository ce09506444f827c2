#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "algorithm/catalog/algorithm.hpp"
#include "anyccl/status.hpp"
#include "simulate/machine.hpp"
#include "simulate/network.hpp"
#include "simulate/replay.hpp"

namespace anyccl::cli {

/// Where collectives are simulated.
struct SimulationSetting {
  Machine machine;
  std::string topology = "flat";     ///< For read_network().
  std::string placement = "linear";  ///< For read_placement().
  int ranks_per_host = 0;            ///< That algorithms know of; 0: one host.
  Rank root{0};                      ///< For collectives that have one.
  bool by_simgrid = false;           ///< Instead of replay().
  bool touches = false;              ///< As replay_on_host() has it; elsewhere it does not count.
};

struct SimulatedRun {
  const Algorithm* algorithm = nullptr;
  std::string network;  ///< Its text.
  int ranks = 0;
  std::size_t bytes = 0;  ///< The vector's, or a block's.
  ReplayResult result;
};

/// More messages are too much for a browser.
inline constexpr std::uint64_t kMostLogged = 100'000;

/// All sizes of one algorithm on one network of `ranks` ranks; with memory rates in the calibration
/// those of one host by replay_on_host(). `log`, if not null, gets what happened in all of them,
/// but nothing by SimGrid.
/// Errors: those of RankPrograms::of(), read_placement() and replay(); invalid_argument for more
/// than kMostLogged messages in a log.
Result<std::vector<SimulatedRun>> simulate_sizes(const Algorithm& algorithm, int ranks,
                                                 std::span<const std::size_t> sizes,
                                                 const Network& network,
                                                 const SimulationSetting& setting,
                                                 ReplayLog* log = nullptr);

/// The network and the constants, as a line for people.
std::string describe(std::span<const SimulatedRun> runs, const SimulationSetting& setting);

/// One line for each run, with its time as a multiple of the fastest of its collective, ranks and
/// size.
std::string to_table(std::span<const SimulatedRun> runs);
/// For each collective the fastest algorithm for each size and number of ranks.
std::string winner_map(std::span<const SimulatedRun> runs);
std::string to_json(std::span<const SimulatedRun> runs, const SimulationSetting& setting);

}  // namespace anyccl::cli
