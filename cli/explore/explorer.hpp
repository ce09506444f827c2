#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "algorithm/catalog/algorithm.hpp"
#include "anyccl/status.hpp"
#include "simulate/machine.hpp"
#include "trace/traces.hpp"

namespace anyccl::cli {

struct ExplorerTopology {
  std::string name;         ///< In addresses.
  std::string description;  ///< For read_network().
};

/// The choices of an explorer.
struct ExplorerSetting {
  std::vector<const Algorithm*> algorithms;
  std::vector<int> ranks;
  std::vector<int> roots;           ///< Beside 0; those that are no rank are left out.
  std::vector<int> ranks_per_host;  ///< Beside one host; only where it makes a difference.
  std::vector<std::size_t> bytes;   ///< Sizes of the vector, or of a block.
  std::vector<ExplorerTopology> topologies;
  std::vector<std::string> placements = {"linear"};  ///< For read_placement(); at least one.
  std::vector<RankTrace> traces;  ///< On one clock, see align(); empty: nothing was recorded.
  Machine machine;
  std::string machine_name;  ///< Where its constants are from; empty: nobody has measured them.
};

/// The movements, networks and simulated times of everything in `setting`, as JSON for
/// explorer_page().
/// Errors: invalid_argument if no algorithm supports any of the numbers of ranks, or a topology has
/// no room for one of them; those of movement_of() and replay().
Result<std::string> explorer_data(const ExplorerSetting& setting);

/// A page of HTML that shows `data` and needs no other file. Errors: internal, if libcrypto has no
/// SHA-256.
Result<std::string> explorer_page(std::string_view data);

}  // namespace anyccl::cli
