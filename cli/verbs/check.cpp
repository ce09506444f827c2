#include "algorithm/verify/check.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "algorithm/loaded/loaded_algorithm.hpp"
#include "algorithms_named.hpp"
#include "base/error.hpp"
#include "framework/membership/membership.hpp"
#include "rank_range.hpp"
#include "verb.hpp"

namespace anyccl::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Flags {
  std::string what, file, ranks = "2..65";
  bool json = false;
};

/// The result for one algorithm.
struct Checked {
  const Algorithm* algorithm;
  Result<verify::CheckReport> report;
};

/// Over all checked sizes.
std::uint32_t most_slots(const verify::CheckReport& report) {
  std::uint32_t most = 0;
  for (const verify::CheckReport::Size& size : report.sizes) most = std::max(most, size.slots);
  return most;
}

/// Over all checked sizes.
Order weakest_order(const verify::CheckReport& report) {
  Order weakest = Order::tree_in_one_step;
  for (const verify::CheckReport::Size& size : report.sizes)
    weakest = std::min(weakest, size.order);
  return weakest;
}

std::string_view order_text(const Algorithm& algorithm, Order order) {
  return reduces(algorithm.collective) ? name(order) : "-";
}

void print_head() {
  fmt::print(
      "# rounds, sent (in vectors, by the busiest rank) and roundings: with the most ranks\n"
      "# order of a sum: the aligned tree, one for each placement of ranks, or by position\n");
  fmt::print("{:<32}{:>9}{:>8}{:>8}{:>8}{:>11}{:>18}{:>7}{:>9}  {}\n", "algorithm", "ranks",
             "shapes", "rounds", "sent", "roundings", "order", "slots", "seconds", "verdict");
}

void print_line(const Checked& checked, const RankRange& range) {
  const std::string ranks = fmt::format("{}..{}", range.first, range.last);
  fmt::print("{:<32}{:>9}", id(*checked.algorithm), ranks);
  if (!checked.report.ok()) {
    fmt::print("  FAULT: {}\n", checked.report.status().message());
  } else if (checked.report->sizes.empty()) {
    fmt::print("  supports none of these\n");
  } else {
    const verify::CheckReport& report = *checked.report;
    const Cost& cost = report.sizes.back().cost;
    fmt::print("{:>8}{:>8}{:>8.2f}{:>11}{:>18}{:>7}{:>9.1f}  {}\n", report.shapes, cost.rounds,
               static_cast<double>(cost.sent) / cost.of, cost.roundings,
               order_text(*checked.algorithm, weakest_order(report)), most_slots(report),
               report.seconds, "right");
  }
  std::fflush(stdout);
}

Json to_json(const Checked& checked, const RankRange& range) {
  Json json = {{"algorithm", id(*checked.algorithm)},
               {"first_ranks", range.first},
               {"last_ranks", range.last},
               {"right", checked.report.ok()}};
  if (!checked.report.ok()) {
    json["fault"] = checked.report.status().message();
    return json;
  }
  const verify::CheckReport& report = *checked.report;
  json["shapes"] = report.shapes;
  json["seconds"] = report.seconds;
  json["sizes"] = Json::array();
  for (const verify::CheckReport::Size& size : report.sizes)
    json["sizes"].push_back({{"ranks", size.size},
                             {"rounds", size.cost.rounds},
                             {"sent_chunks", size.cost.sent},
                             {"vector_chunks", size.cost.of},
                             {"roundings", size.cost.roundings},
                             {"order", order_text(*checked.algorithm, size.order)},
                             {"slots", size.slots}});
  return json;
}

int wrong_usage(std::string_view message) {
  fmt::print(stderr, "anyccl: check: {}\n", message);
  return kUsageError;
}

/// From the least to the most that a file has.
RankRange ranks_of(const std::vector<const Algorithm*>& loaded) {
  RankRange range{FormLimits::kRanks, 1};
  for (const Algorithm* algorithm : loaded)
    for (const WrittenSize& size : algorithm->loaded->text().sizes)
      range = {std::min(range.first, size.ranks), std::max(range.last, size.ranks)};
  return range;
}

/// One that was loaded, for those of its ranks and hosts that are asked for.
Result<verify::CheckReport> check_loaded(const LoadedAlgorithm& loaded, const RankRange& range) {
  std::vector<Shape> shapes;
  for (const WrittenSize& size : loaded.text().sizes) {
    if (size.ranks < range.first || size.ranks > range.last) continue;
    const Shape& shape = shapes.emplace_back(
        Shape{loaded.text().collective, size.ranks, Rank{0}, false, size.host_of});
    ANYCCL_CHECK(loaded.check(shape, slots_for(size.ranks)));
  }
  return verify::check_shapes(loaded.algorithm(), shapes);
}

Checked check_in(const RankRange& range, const Algorithm* algorithm) {
  if (algorithm->loaded != nullptr) return {algorithm, check_loaded(*algorithm->loaded, range)};
  return {algorithm, verify::check_algorithm(*algorithm, range.first, range.last)};
}

int run_checks(const Flags& flags) {
  if (flags.what.empty() == flags.file.empty())
    return wrong_usage("either an algorithm or --file: which is to be checked?");
  Result<RankRange> range = parse_ranks(flags.ranks);
  if (!range.ok()) return wrong_usage(range.status().message());
  const auto algorithms =
      flags.file.empty() ? algorithms_named(flags.what) : algorithm_in(flags.file);
  if (!algorithms.ok()) return wrong_usage(algorithms.status().message());
  if (!flags.file.empty()) *range = ranks_of(*algorithms);

  bool all_right = true;
  Json rows = Json::array();
  if (!flags.json) print_head();
  for (const Algorithm* algorithm : *algorithms) {
    const Checked checked = check_in(*range, algorithm);
    if (algorithm->loaded == nullptr && checked.report.status().code() == Code::invalid_argument)
      return wrong_usage(checked.report.status().message());
    all_right &= checked.report.ok();
    if (flags.json)
      rows.push_back(to_json(checked, *range));
    else
      print_line(checked, *range);
  }
  if (flags.json) fmt::print("{}\n", rows.dump(1));
  return all_right ? 0 : 1;
}

Body declare(CLI::App& app, const Command&) {
  const auto flags = std::make_shared<Flags>();
  app.add_option("algorithm", flags->what, "all_reduce/ring, ring, all_reduce or all");
  auto* const ranks = app.add_option("--ranks", flags->ranks, "Numbers of ranks, as 2..65 or 8")
                          ->capture_default_str();
  app.add_option(
         "--file", flags->file,
         "Check the algorithm in this file, for all its numbers of ranks; -: standard input")
      ->excludes(ranks);
  app.add_flag("--json", flags->json, "Print JSON");
  app.footer(
      "Builds the algorithm for every number of ranks and shape, then runs it and its lowered\n"
      "plans on symbols: right result, no deadlock, no race, few slots, promised cost. If it\n"
      "finds a fault, it prints the place and exits with 1.\n\n"
      "This is a proof, whatever comes first, for the numbers of ranks that were asked for (128\n"
      "at most): up to 17 with all roots; from 18 on with some roots, and with half of the ranks\n"
      "in place. A --file is checked with root 0; from 18 on with all ranks in place and with\n"
      "none. It is a proof of schedules: transports and kernels are tested instead.\n\n"
      "Example: anyccl check all_reduce/ring --ranks 2..65\n"
      "         anyccl check --file mine.json");
  return [flags] { return run_checks(*flags); };
}

}  // namespace

const Verb verb_check{"check", "Prove algorithms right for given numbers of ranks", declare};

}  // namespace anyccl::cli
