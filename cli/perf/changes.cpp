#include "perf/changes.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "framework/tuning/tuner.hpp"
#include "platform/probe/host_facts.hpp"

namespace anyccl::cli {
namespace {

/// Adjacent sizes at which the same algorithm replaces the same other one.
struct Change {
  int ranks;
  std::string_view operation, before, after;
  std::size_t first_bytes, last_bytes;  // of the vector or block
  double least_gain, most_gain;
};

/// Whether both are the same change, whatever their sizes and gains.
bool is_continued_by(const Change& change, const Change& next) {
  return change.ranks == next.ranks && change.operation == next.operation &&
         change.before == next.before && change.after == next.after;
}

TunerQuery query_at(const TunerCell& cell, int ranks) {
  static const int cores = probe::host_facts().cores;
  const Collective collective = candidates_of(*cell.operation, ranks).front()->collective;
  const int per_core = std::max(1, ranks / cores);
  return {{collective, ranks}, cell.count * kTypes[0].bytes, false, per_core};
}

/// Absent: the built-in choice stays, or one of the two algorithms was not measured there.
Result<std::optional<Change>> change_at(const TunerCell& cell, int ranks,
                                        const std::shared_ptr<const TunerTable>& table) {
  const TunerQuery q = query_at(cell, ranks);
  ANYCCL_TRY(const Choice before, select_algorithm(q, {}));
  ANYCCL_TRY(const Choice after, select_algorithm(q, {.tables = {table}}));
  const auto before_us = table->measured_us(*before.algorithm, q);
  const auto after_us = table->measured_us(*after.algorithm, q);
  if (before.algorithm == after.algorithm || !before_us || !after_us)
    return std::optional<Change>();
  const double gain = *before_us / *after_us;
  return std::optional<Change>({ranks, cell.operation->name, before.algorithm->name,
                                after.algorithm->name, q.bytes, q.bytes, gain, gain});
}

/// Returns "64K" or "2M", or the plain number where neither unit divides it.
std::string size_text(std::size_t bytes) {
  for (const auto& [unit, letter] : {std::pair{1U << 20, 'M'}, {1U << 10, 'K'}})
    if (bytes >= unit && bytes % unit == 0) return fmt::format("{}{}", bytes / unit, letter);
  return std::to_string(bytes);
}

std::string line_of(const Change& c) {
  const bool one = c.first_bytes == c.last_bytes;
  const std::string sizes =
      one ? size_text(c.first_bytes) : size_text(c.first_bytes) + ".." + size_text(c.last_bytes);
  const std::string gain = one ? fmt::format("x{:.2f}", c.most_gain)
                               : fmt::format("x{:.2f}..{:.2f}", c.least_gain, c.most_gain);
  return fmt::format("{:>5}  {:<18}{:<12}{:<24}{:<24}{}\n", c.ranks, c.operation, sizes, c.before,
                     c.after, gain);
}

/// The measured cells, as (ranks, operation, count).
using Measured = std::set<std::tuple<int, std::string, std::size_t>>;

Measured measured_in(const nlohmann::json& rows) {
  Measured measured;
  for (const auto& row : rows) measured.emplace(row["ranks"], row["op"], row["count"]);
  return measured;
}

/// Extends the last change if `next` is one more size of it, which `is_adjacent` to its last one.
void add(std::vector<Change>& changes, const Change& next, bool is_adjacent) {
  if (!is_adjacent || !is_continued_by(changes.back(), next)) return changes.push_back(next);
  Change& last = changes.back();
  last.last_bytes = next.last_bytes;
  last.least_gain = std::min(last.least_gain, next.least_gain);
  last.most_gain = std::max(last.most_gain, next.most_gain);
}

}  // namespace

Result<std::string> changes_table(const TuneOptions& options, const std::string& rows,
                                  const std::string& file) {
  ANYCCL_TRY(TunerTable parsed, TunerTable::parse(rows, file));
  const auto table = std::make_shared<const TunerTable>(std::move(parsed));
  const Measured measured = measured_in(nlohmann::json::parse(rows));
  std::vector<Change> all;
  std::size_t changed = 0, missing = 0;
  bool after_change = false;  // at the cell before
  for (const int ranks : options.ranks)
    for (const Operation* operation : options.operations)
      for (const TunerCell& cell : cells_of({{operation}, options.sizes}, ranks)) {
        if (!measured.contains({ranks, std::string(operation->name), cell.count})) {
          ++missing;
          after_change = false;
          continue;
        }
        ANYCCL_TRY(const std::optional<Change> change, change_at(cell, ranks, table));
        const bool is_adjacent = std::exchange(after_change, change.has_value());
        if (!change) continue;
        ++changed;
        add(all, *change, is_adjacent);
      }
  std::string text = fmt::format("{:>5}  {:<18}{:<12}{:<24}{:<24}{}\n", "ranks", "collective",
                                 "bytes", "built in", "now", "gain");
  for (const Change& change : all) text += line_of(change);
  text += fmt::format(
      "{} of {} places (ranks, collective, size) changed; elsewhere the built-in choice is "
      "the fastest, or within {:.0f} % of it.\n",
      changed, measured.size(), 100 * (kClearGain - 1));
  if (missing > 0) text += fmt::format("{} more were not measured: raise --seconds.\n", missing);
  return text;
}

}  // namespace anyccl::cli
