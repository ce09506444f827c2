#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>

#include "algorithms_named.hpp"
#include "base/error.hpp"
#include "draw/grid.hpp"
#include "draw/picture.hpp"
#include "hosts_flag.hpp"
#include "verb.hpp"

namespace anyccl::cli {
namespace {

struct Flags {
  std::string what, file;
  std::vector<std::string> dimensions;
  int ranks = 4;
  std::optional<int> root;
  std::vector<int> hosts;  ///< The number of ranks on each.
  bool svg = false;
};

Result<Movement> movement_asked_for(const Flags& flags) {
  ANYCCL_TRY(const Algorithm* algorithm, algorithm_named(flags.what));
  if (flags.root && !is_rooted(algorithm->collective))
    return error(Code::invalid_argument, "--root: {} has no root", name(algorithm->collective));
  ANYCCL_TRY(std::vector<int> hosts, host_of(flags.hosts, flags.ranks));
  return movement_of(*algorithm, {algorithm->collective, flags.ranks, Rank{flags.root.value_or(0)},
                                  false, std::move(hosts)});
}

Status write(const std::string& picture, const std::string& file) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> out(std::fopen(file.c_str(), "w"),
                                                            std::fclose);
  const bool written =
      out && std::fwrite(picture.data(), 1, picture.size(), out.get()) == picture.size() &&
      std::fflush(out.get()) == 0;
  if (!written) return system_error(errno, "write {}", file);
  return {};
}

int failed(const Status& status) {
  fmt::print(stderr, "anyccl: draw: {}\n", status.message());
  return status.code() == Code::invalid_argument ? kUsageError : 1;
}

Result<std::string> picture_asked_for(const Flags& flags) {
  if (flags.what == "grid") {
    ANYCCL_TRY(const Grid grid, read_grid(flags.dimensions));
    return flags.svg ? to_svg(grid) : to_text(grid);
  }
  if (!flags.dimensions.empty())
    return error(Code::invalid_argument, "'{}': only a grid has dimensions", flags.dimensions[0]);
  ANYCCL_TRY(const Movement movement, movement_asked_for(flags));
  return flags.svg ? to_svg(movement) : to_text(movement);
}

int draw(const Flags& flags) {
  const Result<std::string> picture = picture_asked_for(flags);
  if (!picture.ok()) return failed(picture.status());
  if (flags.file.empty()) {
    fmt::print("{}", *picture);
    return 0;
  }
  const Status written = write(*picture, flags.file);
  return written.ok() ? 0 : failed(written);
}

Body declare(CLI::App& app, const Command&) {
  const auto flags = std::make_shared<Flags>();
  app.add_option("algorithm", flags->what, "all_reduce/ring, an unambiguous name, or grid")
      ->required();
  app.add_option("dimensions", flags->dimensions,
                 "Of a grid: pipeline=4 data=2 tensor=2, the last one fastest");
  app.add_option("-n,--ranks", flags->ranks, "Number of ranks")->capture_default_str();
  app.add_option("--root", flags->root, "Root, for collectives with a root; default: 0");
  app.add_option("--hosts", flags->hosts, "Ranks on each host, as 2,2; default: one host")
      ->delimiter(',');
  app.add_flag("--svg", flags->svg, "Draw a picture (SVG) instead of tables");
  app.add_option("-o,--output", flags->file, "Write to this file; default: standard output");
  app.footer(
      "Shows which rank sends which chunks to which rank in each round, where they are added\n"
      "up, and the chunks of every rank before and after. All of it follows from the schedule\n"
      "that would run; nothing is measured. A grid is drawn with the groups of each dimension.\n\n"
      "Example: anyccl draw all_reduce/ring -n 4 --svg -o ring.svg\n"
      "         anyccl draw grid pipeline=4 data=2 tensor=2");
  return [flags] { return draw(*flags); };
}

}  // namespace

const Verb verb_draw{
    "draw", "Show an algorithm's messages or the groups of a grid, as text or picture", declare};

}  // namespace anyccl::cli
