#pragma once

#include <optional>
#include <string>
#include <vector>

#include "blame/groups.hpp"

namespace anyccl::cli {

/// A rank that waits for another one. Everything is borrowed.
struct WaitEdge {
  const Group* group = nullptr;
  const RankDump* from = nullptr;
  const DumpedWait* wait = nullptr;
  int to = 0;
};

/// All waits, each from a rank to one that it waits for. In a collective a rank waits for those
/// that have not come to it, if there are any: those between them and it only pass the delay on.
std::vector<WaitEdge> edges_of(const std::vector<Group>& groups);

/// A rank that others wait for while it waits for nobody.
struct Culprit {
  std::string kind, process;  ///< As Blame has it.
  std::size_t edge = 0;       ///< One that leads to it.
  std::size_t waiting = 0;    ///< Processes that wait for it, also through others.
};
/// The one that most processes wait for; a dead or silent one before all others.
std::optional<Culprit> find_culprit(const std::vector<Group>& groups,
                                    const std::vector<WaitEdge>& edges);

/// Ranks that wait for each other in a circle, which begins in the first group that it passes;
/// empty: there is none.
std::vector<WaitEdge> find_cycle(const std::vector<WaitEdge>& edges);

}  // namespace anyccl::cli
