#include "algorithm/verify/check.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>

#include "algorithms_named.hpp"
#include "base/error.hpp"
#include "verb.hpp"

namespace anyccl::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Flags {
  std::string what, ranks = "2..65";
  bool json = false;
};

struct RankRange {
  int first = 0, last = 0;
};

/// "2..65", or "8" for one number.
Result<RankRange> parse_ranks(std::string_view text) {
  RankRange range;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, range.first);
  std::from_chars_result last{first.ptr, first.ec};
  range.last = range.first;
  const std::string_view rest(first.ptr, static_cast<std::size_t>(end - first.ptr));
  if (first.ec == std::errc{} && rest.starts_with(".."))
    last = std::from_chars(first.ptr + 2, end, range.last);
  if (last.ec != std::errc{} || last.ptr != end || range.first < 1 || range.last < range.first)
    return error(Code::invalid_argument,
                 "'{}' is not a number or range of ranks such as 8 or 2..65", text);
  return range;
}

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

void print_head() {
  fmt::print(
      "# rounds, sent (in vectors, by the busiest rank) and roundings: with the most ranks\n");
  fmt::print("{:<32}{:>9}{:>8}{:>8}{:>8}{:>11}{:>7}{:>9}  {}\n", "algorithm", "ranks", "shapes",
             "rounds", "sent", "roundings", "slots", "seconds", "verdict");
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
    fmt::print("{:>8}{:>8}{:>8.2f}{:>11}{:>7}{:>9.1f}  {}\n", report.shapes, cost.rounds,
               static_cast<double>(cost.sent) / cost.of, cost.roundings, most_slots(report),
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
                             {"slots", size.slots}});
  return json;
}

int usage_error(std::string_view message) {
  fmt::print(stderr, "anyccl: check: {}\n", message);
  return kUsageError;
}

int run_checks(const Flags& flags) {
  const Result<RankRange> range = parse_ranks(flags.ranks);
  if (!range.ok()) return usage_error(range.status().message());
  const Result<std::vector<const Algorithm*>> algorithms = algorithms_named(flags.what);
  if (!algorithms.ok()) return usage_error(algorithms.status().message());

  bool all_right = true;
  Json rows = Json::array();
  if (!flags.json) print_head();
  for (const Algorithm* algorithm : *algorithms) {
    const Checked checked{algorithm,
                          verify::check_algorithm(*algorithm, range->first, range->last)};
    if (checked.report.status().code() == Code::invalid_argument)
      return usage_error(checked.report.status().message());
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
  app.add_option("algorithm", flags->what, "all_reduce/ring, ring, all_reduce or all")->required();
  app.add_option("--ranks", flags->ranks, "Numbers of ranks, as 2..65 or 8")->capture_default_str();
  app.add_flag("--json", flags->json, "Print JSON");
  app.footer(
      "Builds the algorithm for every number of ranks and shape, then runs it and its lowered\n"
      "plans on symbols: right result, no deadlock, no race, few slots, promised cost. If it\n"
      "finds a fault, it prints the place and exits with 1.\n\n"
      "This is a proof, whatever comes first, for the numbers of ranks that were asked for (128\n"
      "at most): up to 17 with all roots; from 18 on with some roots, and with half of the ranks\n"
      "in place. It is one of schedules: transports and kernels are tested instead.\n\n"
      "Example: anyccl check all_reduce/ring --ranks 2..65");
  return [flags] { return run_checks(*flags); };
}

}  // namespace

const Verb verb_check{"check", "Prove algorithms right for given numbers of ranks", declare};

}  // namespace anyccl::cli
