#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "trace/summary.hpp"

namespace anyccl::cli {
namespace {

std::string time_text(std::int64_t ns) {
  const auto value = static_cast<double>(ns);
  if (ns < 1000) return fmt::format("{} ns", ns);
  if (ns < 1'000'000) return fmt::format("{:.3g} us", value / 1e3);
  if (ns < 1'000'000'000) return fmt::format("{:.3g} ms", value / 1e6);
  return fmt::format("{:.2f} s", value / 1e9);
}

std::string bytes_text(std::uint64_t bytes) {
  if (bytes >= 1 << 20) return fmt::format("{:.4g} MiB", static_cast<double>(bytes) / (1 << 20));
  if (bytes >= 1 << 10) return fmt::format("{:.4g} KiB", static_cast<double>(bytes) / (1 << 10));
  return fmt::format("{} B", bytes);
}

std::string share_text(std::int64_t part, std::int64_t whole) {
  return fmt::format(
      "{:.1f} %", whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string ranks_text(const TraceSummary& summary) {
  std::string text = fmt::format("{:<32} {:>10} {:>14} {:>9} {:>9} {:>13}\n", "", "time",
                                 "communicating", "hidden", "exposed", "late ranks");
  for (const RankTimes& rank : summary.ranks)
    text +=
        fmt::format("{:<32} {:>10} {:>14} {:>9} {:>9} {:>13}\n", rank.label, time_text(rank.total),
                    share_text(rank.communicating, rank.total),
                    share_text(rank.communicating - rank.exposed, rank.total),
                    share_text(rank.exposed, rank.total), share_text(rank.for_late, rank.total));
  return text;
}

std::string operations_text(const TraceSummary& summary) {
  constexpr std::size_t kMost = 20;
  std::int64_t all = 0;
  for (const OperationTimes& times : summary.operations) all += times.total;
  std::string text = fmt::format("{:<16} {:>10} {:>8} {:>10} {:>8} {:>10} {:>13}\n", "operation",
                                 "size", "calls", "time", "share", "median", "late ranks");
  for (std::size_t i = 0; i < std::min(kMost, summary.operations.size()); ++i) {
    const OperationTimes& times = summary.operations[i];
    text += fmt::format("{:<16} {:>10} {:>8} {:>10} {:>8} {:>10} {:>13}\n", times.kind,
                        bytes_text(times.bytes), times.calls, time_text(times.total),
                        share_text(times.total, all), time_text(times.median),
                        share_text(times.for_late, times.total));
  }
  if (summary.operations.size() > kMost)
    text += fmt::format("and {} more\n", summary.operations.size() - kMost);
  return text;
}

std::string late_text(const TraceSummary& summary) {
  constexpr std::size_t kMost = 5;
  std::string text;
  for (std::size_t i = 0; i < std::min(kMost, summary.late.size()); ++i) {
    const LateRank& late = summary.late[i];
    text += fmt::format(
        "rank {} of communicator {} came last to {} of {} collectives, {} after the others at the "
        "median, {} in all\n",
        late.rank, late.communicator, late.last, late.of, time_text(late.median),
        time_text(late.total));
  }
  return text;
}

std::string advice_text(const TraceSummary& summary) {
  const double exposed = summary.exposed_share();
  std::string text =
      fmt::format("Ranks waited for communication {:.1f} % of the time", 100 * exposed);
  if (exposed <= kMostExposed)
    return text + fmt::format(", which is not above {:.0f} %: there is little to win.\n",
                              100 * kMostExposed);
  text += fmt::format(
      ", which is above {:.0f} %. Three remedies, in this order:\n"
      "1. Fewer bytes: smaller types, fewer and larger calls, results that nobody needs left out.\n"
      "2. Overlap: issue operations early, compute meanwhile, wait late.\n"
      "3. A faster algorithm or placement: `anyccl tune`, `anyccl explain`, ranks that talk most "
      "on "
      "one host.\n",
      100 * kMostExposed);
  if (const double late = summary.late_share(); late > 0.5)
    text += fmt::format(
        "But {:.0f} % of it was spent waiting for ranks that came late: give these less to do "
        "first.\n",
        100 * late);
  return text;
}

std::string clocks_text(const std::vector<HostClock>& clocks) {
  std::string text;
  for (const HostClock& clock : clocks) {
    if (clock.host == clocks.front().host) continue;
    text += clock.error_ns < 0
                ? fmt::format(
                      "The clock of host {} was taken by its real time: no operations "
                      "connect it with the others both ways.\n",
                      clock.host)
                : fmt::format("The clock of host {} is {} {} that of host {}, give or take {}.\n",
                              clock.host, time_text(std::abs(clock.ahead_ns)),
                              clock.ahead_ns < 0 ? "behind" : "ahead of", clocks.front().host,
                              time_text(clock.error_ns));
  }
  return text;
}

}  // namespace

std::string text_of(const TraceSummary& summary, const std::vector<HostClock>& clocks) {
  std::vector<std::string> parts{ranks_text(summary), operations_text(summary), late_text(summary),
                                 advice_text(summary), clocks_text(clocks)};
  if (summary.left_out > 0)
    parts.push_back(
        fmt::format("{} operations were forgotten before the traces were written: see "
                    "ANYCCL_RECORD.\n",
                    summary.left_out));
  std::erase(parts, "");
  return fmt::format("{}", fmt::join(parts, "\n"));
}

}  // namespace anyccl::cli
