#include "blame/blame.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "blame/groups.hpp"
#include "blame/waits.hpp"

namespace anyccl::cli {
namespace {

std::string list(const std::vector<int>& ranks) {
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "));
}

/// Returns the date and time in UTC, of `ns` since 1970.
std::string time_text(std::int64_t ns) {
  constexpr std::int64_t kSecond = 1'000'000'000, kMillisecond = 1'000'000;
  return fmt::format("{:%F %T}.{:03} UTC", fmt::gmtime(static_cast<std::time_t>(ns / kSecond)),
                     ns % kSecond / kMillisecond);
}

/// The first collective that ranks of a group call differently.
bool find_mismatch(const Group& group, Blame& blame) {
  std::map<std::uint64_t, std::map<std::string, std::vector<int>>> called;  // by sequence and call
  for (const auto& [rank, dump] : group.dumps)
    for (const DumpedCall& call : dump->calls)
      if (call.sequence > 0) called[call.sequence][call.what].push_back(rank);
  for (const auto& [sequence, by_call] : called) {
    if (by_call.size() < 2) continue;
    const auto most =
        std::max_element(by_call.begin(), by_call.end(), [](const auto& a, const auto& b) {
          return a.second.size() != b.second.size() ? a.second.size() < b.second.size()
                                                    : a.second.front() > b.second.front();
        });
    std::vector<std::string> parts;
    for (const auto& [call, ranks] : by_call) {
      parts.push_back(fmt::format("{} called {}", list(ranks), call));
      if (call != most->first) {
        blame.ranks.insert(blame.ranks.end(), ranks.begin(), ranks.end());
        const auto next = called.find(sequence + 1);
        if (next != called.end() && next->second.contains(call) && next->second.size() == 1)
          parts.back() += fmt::format(", and seems to have left out {}", most->first);
      }
    }
    std::sort(blame.ranks.begin(), blame.ranks.end());
    blame.kind = "mismatch";
    blame.communicator = group.title();
    blame.text = fmt::format("Operation {} of {} differs between ranks: {}.", sequence,
                             group.title(), fmt::join(parts, "; "));
    return true;
  }
  return false;
}

/// "rank 0 waits for it in operation 3, all_reduce of 2 f32, sum, since ..."
std::string waiter_text(const WaitEdge& edge) {
  const DumpedCall* const call = edge.from->call(edge.wait->number);
  std::string text =
      fmt::format("rank {} of {} waits for it in {}{}", edge.from->rank, edge.group->title(),
                  edge.wait->sequence > 0 ? fmt::format("operation {}, ", edge.wait->sequence) : "",
                  call == nullptr ? edge.wait->what : call->what);
  if (call != nullptr) text += ", since " + time_text(call->issued_ns);
  return text;
}

/// The last call of a rank that waits for nobody, as far as it is known.
std::string absence_text(const Group& group, int rank) {
  const RankDump* const dump = group.dump_of(rank);
  if (dump == nullptr) {
    const std::uint64_t entered = group.entered(rank);
    return entered == 0 ? "no call of it is known"
                        : fmt::format("it was last seen in operation {}", entered);
  }
  if (dump->calls.empty()) return "it has called nothing there";
  const DumpedCall& last = dump->calls.back();
  const std::string call =
      last.sequence > 0 ? fmt::format("operation {}, {}", last.sequence, last.what) : last.what;
  return last.ended_ns == 0
             ? "its last call there is " + call
             : fmt::format("its last call there, {}, ended at {}", call, time_text(last.ended_ns));
}

Blame blame_of(const Culprit& culprit, const std::vector<WaitEdge>& edges) {
  const WaitEdge& edge = edges[culprit.edge];
  const std::string subject =
      fmt::format("Rank {} of {}{}", edge.to, edge.group->title(),
                  culprit.process.empty() ? "" : fmt::format(" ({})", culprit.process));
  const std::string what =
      culprit.kind == "dead"      ? "died"
      : culprit.kind == "silent"  ? "does not answer, as if its host were powered off or cut off"
      : culprit.kind == "left"    ? "has left"
      : culprit.kind == "stopped" ? "is stopped by a signal or a debugger"
      : culprit.kind == "aborted" ? "has aborted the communicator"
      : culprit.kind == "no_dump"
          ? "has written no dump: it may be busy outside of calls, stopped or dead"
          : "has not called what the others wait for";
  std::string text = fmt::format("{} {}: {}; {}", subject, what, absence_text(*edge.group, edge.to),
                                 waiter_text(edge));
  if (culprit.waiting > 1)
    text += fmt::format(". {} processes wait for it, in all", culprit.waiting);
  return {culprit.kind, edge.group->title(), {edge.to}, text + "."};
}

/// Blames no rank, as "unclear", where all wait for each other in one operation.
Blame blame_of_cycle(const std::vector<WaitEdge>& cycle) {
  const WaitEdge& first = cycle.front();
  const bool is_one_call = std::all_of(cycle.begin(), cycle.end(), [&](const WaitEdge& edge) {
    return edge.group == first.group && edge.wait->sequence > 0 &&
           edge.wait->sequence == first.wait->sequence;
  });
  Blame blame{is_one_call ? "unclear" : "cycle", first.group->title(), {}, {}};
  if (is_one_call) {
    blame.text = fmt::format(
        "All ranks that are known have entered operation {} of {}, and wait for each other there: "
        "its data is on its way, or one of them is kept from going on.",
        first.wait->sequence, first.group->title());
    return blame;
  }
  std::vector<std::string> parts;
  for (const WaitEdge& edge : cycle) {
    const DumpedCall* const call = edge.from->call(edge.wait->number);
    const std::string kind = call == nullptr ? edge.wait->what : call->what;
    parts.push_back(
        edge.wait->sequence > 0
            ? fmt::format("rank {} is in operation {} of {}, {}, and waits for rank {}",
                          edge.from->rank, edge.wait->sequence, edge.group->title(), kind, edge.to)
            : fmt::format("rank {} of {} is in {}", edge.from->rank, edge.group->title(), kind));
    if (edge.group == first.group) blame.ranks.push_back(edge.from->rank);
  }
  blame.text = fmt::format("Ranks wait for each other in calls that come in another order: {}.",
                           fmt::join(parts, "; "));
  return blame;
}

/// The rank that comes last to most operations, by a time that matters.
bool find_slow(const Group& group, Blame& blame) {
  constexpr std::size_t kFewest = 8;
  constexpr double kLeastMs = 1;
  if (group.size < 2) return false;
  std::map<std::uint64_t, std::set<std::pair<std::int64_t, int>>> by_time;  // issue, rank
  for (const auto& [rank, dump] : group.dumps)
    for (const DumpedCall& call : dump->calls)
      if (call.sequence > 0) by_time[call.sequence].emplace(call.issued_ns, rank);
  std::map<int, std::vector<double>> late;  // ms behind the one before the last, by rank
  std::size_t operations = 0;
  for (const auto& [sequence, ranks] : by_time) {
    if (ranks.size() < static_cast<std::size_t>(group.size)) continue;
    ++operations;
    const auto last = std::prev(ranks.end());
    late[last->second].push_back(static_cast<double>(last->first - std::prev(last)->first) / 1e6);
  }
  for (auto& [rank, times] : late) {
    if (operations < kFewest || 2 * times.size() <= operations) continue;
    std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2),
                     times.end());
    const double median = times[times.size() / 2];
    if (median < kLeastMs) continue;
    blame = {
        "slow",
        group.title(),
        {rank},
        fmt::format("Nobody hangs, but rank {} of {} comes last to {} of {} operations, {:.3g} "
                    "ms after all others at the median: they wait for it.",
                    rank, group.title(), times.size(), operations, median)};
    return true;
  }
  return false;
}

/// Blames the rank with a failure whose dump is the earliest. Returns whether there is one.
bool find_failure(const std::vector<RankDump>& dumps, Blame& blame) {
  const RankDump* first = nullptr;
  for (const RankDump& dump : dumps)
    if (!dump.failure.empty() && (first == nullptr || dump.time_ns < first->time_ns)) first = &dump;
  if (first == nullptr) return false;
  const std::string title = first->name.empty() ? first->communicator : first->name;
  blame = {
      "failure",
      title,
      {first->rank},
      fmt::format("Nobody is known to wait. The first failure is that of rank {} of {}, at {}: "
                  "{}.",
                  first->rank, title, time_text(first->time_ns), first->failure)};
  return true;
}

}  // namespace

Blame find_blame(const std::vector<RankDump>& dumps) {
  const std::vector<Group> groups = groups_of(dumps);
  Blame blame;
  for (const Group& group : groups)
    if (find_mismatch(group, blame)) return blame;
  const std::vector<WaitEdge> edges = edges_of(groups);
  if (const auto culprit = find_culprit(groups, edges)) return blame_of(*culprit, edges);
  if (const std::vector<WaitEdge> cycle = find_cycle(edges); !cycle.empty())
    return blame_of_cycle(cycle);
  if (find_failure(dumps, blame)) return blame;
  for (const Group& group : groups)
    if (find_slow(group, blame)) return blame;
  return {"nobody", "", {}, "Nobody: no rank that has written a dump waits for another one."};
}

}  // namespace anyccl::cli
