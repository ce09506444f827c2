#include "blame/waits.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace anyccl::cli {
namespace {

/// Returns, of a collective, the ranks that have not entered it, or, if there are none, those that
/// `wait` names. A message that names no rank waits for all others.
std::vector<int> awaited_ranks(const Group& group, const RankDump& dump, const DumpedWait& wait) {
  std::vector<int> ranks;
  for (int r = 0; r < group.size; ++r)
    if (r != dump.rank && wait.sequence > 0 && group.entered(r) < wait.sequence) ranks.push_back(r);
  if (!ranks.empty()) return ranks;
  if (!wait.ranks.empty() || wait.sequence > 0) return wait.ranks;
  for (int r = 0; r < group.size; ++r)
    if (r != dump.rank) ranks.push_back(r);
  return ranks;
}

const std::string& from_node(const WaitEdge& edge) {
  return edge.group->node(edge.from->rank);
}
const std::string& to_node(const WaitEdge& edge) {
  return edge.group->node(edge.to);
}

/// The edges that leave each process.
using Graph = std::map<std::string, std::vector<std::size_t>>;

Graph graph_of(const std::vector<WaitEdge>& edges) {
  Graph graph;
  for (std::size_t i = 0; i < edges.size(); ++i) graph[from_node(edges[i])].push_back(i);
  return graph;
}

/// All processes that wait for `node`, also through others.
std::set<std::string> waiting_for(const std::string& node, const std::vector<WaitEdge>& edges) {
  std::set<std::string> found{node};
  for (bool grows = true; grows;) {
    grows = false;
    for (const WaitEdge& edge : edges)
      if (found.contains(to_node(edge))) grows = found.insert(from_node(edge)).second || grows;
  }
  found.erase(node);
  return found;
}

/// Whether that is why the waiting rank has failed, and not what the other one did afterwards.
bool has_aborted(const WaitEdge& edge) {
  const RankDump* const dump = edge.group->dump_of(edge.to);
  return dump != nullptr && dump->aborted &&
         edge.from->failure.find(dump->failure) != std::string::npos;
}

/// Returns the Culprit::kind of the process that is waited for: its fate, also if it waits itself,
/// or "aborted", "absent" or "no_dump"; empty: it has no fate and waits itself.
std::string kind_of(const WaitEdge& edge, const Graph& graph, const std::vector<Group>& groups) {
  if (const std::string fate = edge.group->fate(edge.to); !fate.empty()) return fate;
  const std::string node = to_node(edge);
  if (graph.contains(node)) return "";
  if (has_aborted(edge)) return "aborted";
  // Whether the process that is waited for left a dump, in any group.
  const bool left_dump = std::any_of(groups.begin(), groups.end(), [&](const Group& group) {
    return std::any_of(group.dumps.begin(), group.dumps.end(),
                       [&](const auto& dump) { return group.node(dump.first) == node; });
  });
  return left_dump ? "absent" : "no_dump";
}

/// Whether the way along edge `at` and on leads to a cycle; `path` then has the edges of the cycle
/// alone. `seen`: processes from which the search need not go on again.
bool follow_to_cycle(std::size_t at, const std::vector<WaitEdge>& edges, const Graph& graph,
                     std::vector<std::size_t>& path, std::set<std::string>& seen) {
  const std::string node = to_node(edges[at]);
  path.push_back(at);
  const auto begin = std::find_if(path.begin(), path.end(),
                                  [&](std::size_t i) { return from_node(edges[i]) == node; });
  if (begin != path.end()) {
    path.erase(path.begin(), begin);
    return true;
  }
  const auto next = graph.find(node);
  if (next != graph.end() && seen.insert(node).second)
    for (const std::size_t i : next->second)
      if (follow_to_cycle(i, edges, graph, path, seen)) return true;
  path.pop_back();
  return false;
}

}  // namespace

std::vector<WaitEdge> edges_of(const std::vector<Group>& groups) {
  std::vector<WaitEdge> edges;
  for (const Group& group : groups)
    for (const auto& [rank, dump] : group.dumps)
      for (const DumpedWait& wait : dump->waits)
        for (const int to : awaited_ranks(group, *dump, wait))
          if (to != rank) edges.push_back({&group, dump, &wait, to});
  return edges;
}

std::optional<Culprit> find_culprit(const std::vector<Group>& groups,
                                    const std::vector<WaitEdge>& edges) {
  const Graph graph = graph_of(edges);
  std::map<std::string, Culprit> culprits;
  for (std::size_t i = 0; i < edges.size(); ++i) {
    const std::string node = to_node(edges[i]);
    if (culprits.contains(node)) continue;
    const std::string kind = kind_of(edges[i], graph, groups);
    if (!kind.empty())
      culprits[node] = {kind, edges[i].group->process(edges[i].to), i,
                        waiting_for(node, edges).size()};
  }
  std::optional<Culprit> worst;
  const auto weight = [](const Culprit& one) {
    return std::pair(one.kind == "dead" || one.kind == "silent", one.waiting);
  };
  for (const auto& [node, one] : culprits)
    if (!worst || weight(one) > weight(*worst)) worst = one;
  return worst;
}

std::vector<WaitEdge> find_cycle(const std::vector<WaitEdge>& edges) {
  const Graph graph = graph_of(edges);
  std::set<std::string> seen;
  for (std::size_t i = 0; i < edges.size(); ++i) {
    std::vector<std::size_t> path;
    if (!follow_to_cycle(i, edges, graph, path, seen)) continue;
    std::vector<WaitEdge> cycle;
    for (const std::size_t at : path) cycle.push_back(edges[at]);
    std::rotate(cycle.begin(), std::ranges::min_element(cycle, {}, &WaitEdge::group), cycle.end());
    return cycle;
  }
  return {};
}

}  // namespace anyccl::cli
