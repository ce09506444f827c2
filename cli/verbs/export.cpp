#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "algorithm/loaded/form.hpp"
#include "algorithms_named.hpp"
#include "base/byte_size.hpp"
#include "base/error.hpp"
#include "base/whole_file.hpp"
#include "goal.hpp"
#include "hosts_flag.hpp"
#include "rank_range.hpp"
#include "verb.hpp"

namespace anyccl::cli {
namespace {

struct Flags {
  std::string what, ranks = "4", name, file;
  std::vector<int> hosts;  ///< The number of ranks on each.
  bool goal = false;
  std::string bytes;
  double bytes_per_ns = 10;
};

/// Those of the range that the algorithm can do.
Result<std::vector<Shape>> shapes_asked_for(const Flags& flags, const Algorithm& algorithm) {
  ANYCCL_TRY(const RankRange range, parse_ranks(flags.ranks));
  if (range.last > FormLimits::kRanks)
    return error(Code::invalid_argument, "--ranks {}: {} are the most", flags.ranks,
                 FormLimits::kRanks);
  std::vector<Shape> shapes;
  for (int n = range.first; n <= range.last; ++n) {
    ANYCCL_TRY(std::vector<int> hosts, host_of(flags.hosts, n));
    Shape shape{algorithm.collective, n, Rank{0}, false, std::move(hosts)};
    if (algorithm.supports(shape)) shapes.push_back(std::move(shape));
  }
  if (shapes.empty())
    return error(Code::invalid_argument, "{} does not support {} ranks{}{}", id(algorithm),
                 flags.ranks, algorithm.needs.empty() ? "" : ": it needs ", algorithm.needs);
  return shapes;
}

Result<std::string> text_asked_for(const Flags& flags) {
  ANYCCL_TRY(const Algorithm* const algorithm, algorithm_named(flags.what));
  ANYCCL_TRY(const std::vector<Shape> shapes, shapes_asked_for(flags, *algorithm));
  if (flags.goal) {
    if (shapes.size() > 1)
      return error(Code::invalid_argument, "--goal: of one number of ranks, not of {}",
                   shapes.size());
    ANYCCL_TRY(const std::size_t bytes, parse_size(flags.bytes));
    return to_goal(*algorithm, shapes[0], bytes, flags.bytes_per_ns);
  }
  WrittenAlgorithm text = written_form(*algorithm, shapes);
  if (!flags.name.empty()) text.name = flags.name;
  return to_text(text);
}

int export_failed(const Status& status) {
  fmt::print(stderr, "anyccl: export: {}\n", status.message());
  return status.code() == Code::invalid_argument ? kUsageError : 1;
}

int run(const Flags& flags) {
  const Result<std::string> text = text_asked_for(flags);
  if (!text.ok()) return export_failed(text.status());
  if (flags.file.empty()) {
    fmt::print("{}", *text);
    return 0;
  }
  const Status status = write_whole_file(flags.file, *text);
  return status.ok() ? 0 : export_failed(status);
}

Body declare(CLI::App& app, const Command&) {
  const auto flags = std::make_shared<Flags>();
  app.add_option("algorithm", flags->what, "all_reduce/ring, or an unambiguous name")->required();
  app.add_option("-n,--ranks", flags->ranks, "Numbers of ranks, as 2..16 or 8")
      ->capture_default_str();
  app.add_option("--hosts", flags->hosts, "Ranks on each host, as 2,2; default: one host")
      ->delimiter(',');
  app.add_option("--name", flags->name, "Name of the algorithm in the text; default: its own");
  auto* const goal = app.add_flag("--goal", flags->goal,
                                  "Print GOAL instead, which LogGOPSim and ATLAHS simulate");
  auto* const bytes =
      app.add_option("-b,--bytes", flags->bytes,
                     "With --goal: size of the vector, or of one block; suffixes K, M and G");
  goal->needs(bytes);
  bytes->needs(goal);
  app.add_option("--reduce-rate", flags->bytes_per_ns,
                 "With --goal: bytes that a rank adds up or copies in a ns")
      ->capture_default_str()
      ->check(CLI::PositiveNumber)
      ->needs(goal);
  app.add_option("-o,--output", flags->file, "Write to this file; default: standard output");
  app.footer(
      "Prints what each rank does as text (JSON), which anyccl check --file reads again. A copy\n"
      "with another name and a few changes is an algorithm of your own: see\n"
      "docs/own-algorithms.md. python3 -m anyccl.chakra turns what --goal prints into traces of\n"
      "Chakra.\n\n"
      "Example: anyccl export all_reduce/ring -n 2..8 --name mine -o mine.json\n"
      "         anyccl check --file mine.json\n"
      "         anyccl perf all_reduce -g 4 --algo-file mine.json");
  return [flags] { return run(*flags); };
}

}  // namespace

const Verb verb_export{"export", "Print an algorithm as a text that can be loaded again", declare};

}  // namespace anyccl::cli
