#include "draw/neighbors.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "anyccl/anyccl.h"
#include "base/error.hpp"
#include "draw/table.hpp"
#include "framework/message/topology.hpp"

namespace anyccl::cli {
namespace {

constexpr int kMostMapped = 64;

/// Splits a text into the words of edges, and knows where it is.
class EdgeWords {
 public:
  EdgeWords(std::string_view text, std::string_view file) : rest_(text), file_(file) {}

  /// The next one; empty at the end.
  std::string_view next() {
    skip();
    const std::size_t end = std::min(rest_.find_first_of(", \t\r\n#"), rest_.size());
    const std::string_view word = rest_.substr(0, end);
    rest_.remove_prefix(end);
    ++number_;
    return word;
  }
  /// "edge 3, '2>'" or "ring.txt:2: '2>'"
  std::string place_text(std::string_view word) const {
    return file_.empty() ? fmt::format("edge {}, '{}'", number_, word)
                         : fmt::format("{}:{}: '{}'", file_, line_, word);
  }

 private:
  void skip() {
    bool comment = false;
    for (; !rest_.empty(); rest_.remove_prefix(1)) {
      const char c = rest_[0];
      if (c == '\n') ++line_;
      comment = c != '\n' && (comment || c == '#');
      if (!comment && std::string_view(", \t\r\n").find(c) == std::string_view::npos) return;
    }
  }

  std::string_view rest_, file_;
  int number_ = 0, line_ = 1;
};

/// Adds the edges of "0>1-2"; false if the word is none, when its first edges may have been added.
bool add_edges(std::string_view word, std::vector<GraphEdge>& edges) {
  const char* at = word.data();
  const char* const end = at + word.size();
  const auto number = [&](int& rank) {
    const auto read = std::from_chars(at, end, rank);
    const bool good = read.ec == std::errc() && rank >= 0 && at != end && *at != '-';
    at = read.ptr;
    return good;
  };
  int from = 0, to = 0;
  if (!number(from) || at == end) return false;
  for (; at != end; from = to) {
    const char way = *at++;
    if ((way != '>' && way != '-') || !number(to)) return false;
    edges.push_back({from, to});
    if (way == '-') edges.push_back({to, from});
  }
  return true;
}

std::string rank_or_none(int rank) {
  return rank == ANYCCL_NO_RANK ? "-" : fmt::format("{}", rank);
}

}  // namespace

Result<NeighborGrid> read_neighbor_grid(std::span<const std::string> words,
                                        std::span<const std::string> circles) {
  NeighborGrid made;
  ANYCCL_TRY(made.grid, read_grid(words));
  made.periodic.resize(made.grid.dims.size());
  for (const std::string& circle : circles) {
    const auto& names = made.grid.names;
    const auto found = std::find(names.begin(), names.end(), circle);
    if (found == names.end())
      return error(Code::invalid_argument, "--periodic: there is no dimension '{}', but {}", circle,
                   fmt::join(names, ", "));
    made.periodic[static_cast<std::size_t>(found - names.begin())] = 1;
  }
  return made;
}

Result<NeighborGraph> read_edges(std::string_view text, std::string_view file,
                                 std::optional<int> ranks) {
  NeighborGraph graph;
  graph.ranks = ranks.value_or(0);
  if (graph.ranks < 0 || graph.ranks > kMostMapped)
    return error(Code::invalid_argument,
                 "--ranks: a graph of {} ranks cannot be drawn, only 1 to {}", graph.ranks,
                 kMostMapped);
  EdgeWords words(text, file);
  for (std::string_view word = words.next(); !word.empty(); word = words.next()) {
    const std::size_t before = graph.edges.size();
    if (!add_edges(word, graph.edges))
      return error(Code::invalid_argument, "{} is not an edge, as 0>1, or 0-1 for both ways",
                   words.place_text(word));
    for (std::size_t i = before; i < graph.edges.size(); ++i) {
      const int largest = std::max(graph.edges[i].from, graph.edges[i].to);
      if (largest >= ranks.value_or(kMostMapped))
        return error(Code::invalid_argument, "{}: rank {} is not in 0..{}", words.place_text(word),
                     largest, ranks.value_or(kMostMapped) - 1);
      graph.ranks = std::max(graph.ranks, largest + 1);
    }
  }
  if (graph.edges.empty())
    return error(Code::invalid_argument, "{}{}there are no edges, as 0>1,1>2,2>0", file,
                 file.empty() ? "" : ": ");
  return graph;
}

std::string title(const NeighborGrid& grid) {
  std::vector<std::string> sizes;
  for (std::size_t i = 0; i < grid.grid.dims.size(); ++i)
    sizes.push_back(fmt::format("{} {}{}", grid.grid.names[i], grid.grid.dims[i],
                                grid.periodic[i] != 0 ? " (a circle)" : ""));
  return fmt::format("{}: {} ranks and their neighbours", fmt::join(sizes, " x "), grid.grid.ranks);
}

std::string title(const NeighborGraph& graph) {
  return fmt::format("A graph of {} ranks and {} edge{}", graph.ranks, graph.edges.size(),
                     graph.edges.size() == 1 ? "" : "s");
}

std::vector<Sides> sides_of(const NeighborGrid& grid, std::size_t dim) {
  std::vector<Sides> sides;
  for (int rank = 0; rank < grid.grid.ranks; ++rank) {
    const auto topology =
        RankTopology::make_grid(grid.grid.ranks, rank, grid.grid.dims, grid.periodic);
    sides.push_back({topology->shifted(dim, -1), topology->shifted(dim, 1)});
  }
  return sides;
}

std::string to_text(const NeighborGrid& grid) {
  std::vector<Line> lines{{"rank", "place"}};
  for (const std::string& name : grid.grid.names)
    lines[0].push_back(fmt::format("{}: before, after", name));
  for (int rank = 0; rank < grid.grid.ranks; ++rank) {
    const auto topology =
        RankTopology::make_grid(grid.grid.ranks, rank, grid.grid.dims, grid.periodic);
    lines.push_back(
        {fmt::format("{}", rank), fmt::format("{}", fmt::join(topology->coords_of(rank), " "))});
  }
  for (std::size_t dim = 0; dim < grid.grid.dims.size(); ++dim) {
    const std::vector<Sides> sides = sides_of(grid, dim);
    for (std::size_t rank = 0; rank < sides.size(); ++rank)
      lines[rank + 1].push_back(
          fmt::format("{}, {}", rank_or_none(sides[rank].before), rank_or_none(sides[rank].after)));
  }
  return title(grid) + "\n\n" + table(lines);
}

std::string to_text(const NeighborGraph& graph) {
  std::vector<Line> lines{{"rank", "hears of", "sends to"}};
  for (int rank = 0; rank < graph.ranks; ++rank) {
    std::vector<int> from, to;
    for (const GraphEdge& edge : graph.edges) {
      if (edge.to == rank) from.push_back(edge.from);
      if (edge.from == rank) to.push_back(edge.to);
    }
    const auto listed = [](const std::vector<int>& ranks) {
      return ranks.empty() ? "-" : fmt::format("{}", fmt::join(ranks, " "));
    };
    lines.push_back({fmt::format("{}", rank), listed(from), listed(to)});
  }
  return title(graph) + "\n\n" + table(lines);
}

}  // namespace anyccl::cli
