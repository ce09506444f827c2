#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>

#include "algorithms_named.hpp"
#include "base/error.hpp"
#include "base/whole_file.hpp"
#include "draw/grid.hpp"
#include "draw/neighbors.hpp"
#include "draw/picture.hpp"
#include "hosts_flag.hpp"
#include "verb.hpp"

namespace anyccl::cli {
namespace {

struct Flags {
  std::string what, file, edges;
  std::vector<std::string> words;  ///< Dimensions or edges.
  std::vector<std::string> circles;
  std::optional<int> ranks;
  std::optional<int> root;
  std::vector<int> hosts;  ///< The number of ranks on each.
  bool svg = false;
};

Result<Movement> movement_asked_for(const Flags& flags) {
  ANYCCL_TRY(const Algorithm* algorithm, algorithm_named(flags.what));
  if (flags.root && !is_rooted(algorithm->collective))
    return error(Code::invalid_argument, "--root: {} has no root", name(algorithm->collective));
  const int ranks = flags.ranks.value_or(4);
  ANYCCL_TRY(std::vector<int> hosts, host_of(flags.hosts, ranks));
  return movement_of(*algorithm, {algorithm->collective, ranks, Rank{flags.root.value_or(0)}, false,
                                  std::move(hosts)});
}

/// Writes to the file of this name, never to the standard output.
Status write(const std::string& picture, const std::string& file) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> out(std::fopen(file.c_str(), "w"),
                                                            std::fclose);
  const bool written =
      out && std::fwrite(picture.data(), 1, picture.size(), out.get()) == picture.size() &&
      std::fflush(out.get()) == 0;
  if (!written) return system_error(errno, "write {}", file);
  return {};
}

int report_failure(const Status& status) {
  fmt::print(stderr, "anyccl: draw: {}\n", status.message());
  return status.code() == Code::invalid_argument ? kUsageError : 1;
}

template <typename Drawing>
std::string picture_of(const Drawing& drawing, const Flags& flags) {
  return flags.svg ? to_svg(drawing) : to_text(drawing);
}

Result<std::string> topology_asked_for(const Flags& flags) {
  const bool has_words = !flags.words.empty();
  if (has_words == !flags.edges.empty())
    return error(Code::invalid_argument,
                 "a topology has either dimensions, as x=4 y=3, or edges, as '0>1,1>2,2>0', or "
                 "--edges FILE");
  if (has_words && flags.words[0].find('=') != std::string::npos) {
    ANYCCL_TRY(const NeighborGrid grid, read_neighbor_grid(flags.words, flags.circles));
    return picture_of(grid, flags);
  }
  if (!flags.circles.empty())
    return error(Code::invalid_argument, "--periodic: a graph has no dimension '{}'",
                 flags.circles[0]);
  std::string edges = fmt::format("{}", fmt::join(flags.words, ","));
  if (!has_words) {
    ANYCCL_TRY(edges, read_whole_file(flags.edges));
  }
  ANYCCL_TRY(const NeighborGraph graph, read_edges(edges, flags.edges, flags.ranks));
  return picture_of(graph, flags);
}

Result<std::string> picture_asked_for(const Flags& flags) {
  if (flags.what == "topology") return topology_asked_for(flags);
  for (const auto& [name, given] : {std::pair{"--edges", !flags.edges.empty()},
                                    std::pair{"--periodic", !flags.circles.empty()}})
    if (given) return error(Code::invalid_argument, "{}: only of a topology", name);
  if (flags.what == "grid") {
    ANYCCL_TRY(const Grid grid, read_grid(flags.words));
    return picture_of(grid, flags);
  }
  if (!flags.words.empty())
    return error(Code::invalid_argument, "'{}': only a grid and a topology have dimensions",
                 flags.words[0]);
  ANYCCL_TRY(const Movement movement, movement_asked_for(flags));
  return picture_of(movement, flags);
}

int draw(const Flags& flags) {
  const Result<std::string> picture = picture_asked_for(flags);
  if (!picture.ok()) return report_failure(picture.status());
  if (flags.file.empty()) {
    fmt::print("{}", *picture);
    return 0;
  }
  const Status written = write(*picture, flags.file);
  return written.ok() ? 0 : report_failure(written);
}

Body declare(CLI::App& app, const Command&) {
  const auto flags = std::make_shared<Flags>();
  app.add_option("algorithm", flags->what,
                 "all_reduce/ring, an unambiguous name, grid, or topology")
      ->required();
  app.add_option("words", flags->words,
                 "Of a grid or topology: dimensions, as pipeline=4 data=2 tensor=2, the last one "
                 "fastest; or of a topology: edges, as '0>1,1>2', or 0-1 for both ways");
  app.add_option("--periodic", flags->circles, "Dimensions of a topology that are circles: x,y")
      ->delimiter(',');
  app.add_option("--edges", flags->edges, "Read the edges of a topology from this file");
  app.add_option("-n,--ranks", flags->ranks,
                 "Number of ranks; default: 4, or those that edges name");
  app.add_option("--root", flags->root, "Root, for collectives with a root; default: 0");
  app.add_option("--hosts", flags->hosts, "Ranks on each host, as 2,2; default: one host")
      ->delimiter(',');
  app.add_flag("--svg", flags->svg, "Draw a picture (SVG) instead of tables");
  app.add_option("-o,--output", flags->file, "Write to this file; default: standard output");
  app.footer(
      "Shows which rank sends which chunks to which rank in each round, where they are added\n"
      "up, and the chunks of every rank before and after. All of it follows from the schedule\n"
      "that would run; nothing is measured. A grid is drawn with the groups of each dimension, a\n"
      "topology with the neighbours of each rank.\n\n"
      "Example: anyccl draw all_reduce/ring -n 4 --svg -o ring.svg\n"
      "         anyccl draw grid pipeline=4 data=2 tensor=2\n"
      "         anyccl draw topology y=3 x=4 --periodic x\n"
      "         anyccl draw topology '0>1>2>0,2-3'");
  return [flags] { return draw(*flags); };
}

}  // namespace

const Verb verb_draw{
    "draw", "Show an algorithm's messages, or groups or neighbours of ranks, as text or picture",
    declare};

}  // namespace anyccl::cli
