#include "framework/diagnosis/wait_report.hpp"

#include <unistd.h>

#include <algorithm>

#include "base/error.hpp"
#include "platform/probe/process_state.hpp"

namespace anyccl {
namespace {

/// Ranks that a report names: it also has to fit the notice with which it goes to the peers.
constexpr std::size_t kMostNamed = 4;

std::string number(Rank rank) {
  return fmt::format("rank {}", index(rank));
}

}  // namespace

std::string WaitReport::where(const Operation& operation, const Execution* collective) {
  if (collective == nullptr) return "in " + operation.what();
  return fmt::format("in operation {}, {}", collective->sequence(), describe(collective->record()));
}

std::string WaitReport::text(const Operation& operation, const Execution* collective) const {
  std::vector<Rank> awaited;
  operation.awaited(awaited);
  std::sort(awaited.begin(), awaited.end());
  awaited.erase(std::unique(awaited.begin(), awaited.end()), awaited.end());
  std::string whom = list(awaited, collective == nullptr);
  if (collective == nullptr && awaited == std::vector{me_.rank})
    return fmt::format(
        "{} waits for itself {}: only another of its threads can make the call that "
        "matches; one thread makes both in a group",
        me_.names[uindex(me_.rank)], where(operation, collective));
  if (whom.empty()) whom = collective == nullptr ? "a message from any rank" : "its peers";
  std::string text = fmt::format("{} waits for {} {}", me_.names[uindex(me_.rank)], whom,
                                 where(operation, collective));
  if (collective != nullptr)
    text += fmt::format(", {}; {}", collective->place(), missing(collective->sequence(), awaited));
  else
    for (std::size_t i = 0; i < std::min(awaited.size(), kMostNamed); ++i)
      text += fmt::format("; {} {}", number(awaited[i]), standing(awaited[i], 0));
  if (std::any_of(awaited.begin(), awaited.end(), [&](Rank r) { return is_of_this_process(r); }))
    text += "; a thread that calls for several ranks of its process does so in a group";
  return text;
}

/// A few of them; `in_full`: with their hosts and processes.
std::string WaitReport::list(const std::vector<Rank>& ranks, bool in_full) const {
  std::string text;
  for (std::size_t i = 0; i < std::min(ranks.size(), kMostNamed); ++i)
    text += fmt::format("{}{}", i > 0 ? ", " : "",
                        in_full ? me_.names[uindex(ranks[i])] : number(ranks[i]));
  if (ranks.size() > kMostNamed)
    text += fmt::format(" and {} other ranks", ranks.size() - kMostNamed);
  return text;
}

/// Names the ranks that have not entered the call or, if there are none, those that have entered it
/// and are stopped. Of ranks that tell this one only their messages to it, `awaited` ones count.
std::string WaitReport::missing(std::uint64_t sequence, const std::vector<Rank>& awaited) const {
  std::vector<Rank> late, stopped;
  int unknown = 0;
  for (int r = 0; r < me_.size; ++r) {
    Transport* const t = routes_.to[static_cast<std::size_t>(r)];
    if (t == nullptr) continue;
    const PeerCalls calls = t->calls_of(Rank{r});
    if (calls.entered >= sequence) {
      if (is_stopped(Rank{r})) stopped.push_back(Rank{r});
    } else if (calls.is_complete || std::binary_search(awaited.begin(), awaited.end(), Rank{r})) {
      late.push_back(Rank{r});
    } else {
      ++unknown;
    }
  }
  const std::vector<Rank>& named = late.empty() ? stopped : late;
  std::string text = !late.empty()  ? "not there yet: "
                     : unknown == 0 ? "all ranks have entered it"
                                    : "those that it waits for have entered it";
  for (std::size_t i = 0; i < std::min(named.size(), kMostNamed); ++i)
    text += fmt::format("{}{} {}",
                        i > 0          ? "; "
                        : late.empty() ? ", but "
                                       : "",
                        me_.names[uindex(named[i])], standing(named[i], sequence));
  if (named.size() > kMostNamed)
    text += fmt::format("; and {} other ranks", named.size() - kMostNamed);
  if (unknown > 0) text += fmt::format("; nothing is known of {} other ranks", unknown);
  return text;
}

/// "has called no collective, and its process is stopped". `sequence`: the call that it has not
/// entered; 0: none.
std::string WaitReport::standing(Rank rank, std::uint64_t sequence) const {
  if (routes_.to[uindex(rank)] == nullptr) return "is this one";
  std::string text = calls_of(rank, sequence);
  if (me_.around != nullptr) text += me_.around->call_elsewhere(rank);
  if (is_stopped(rank)) text += ", and its process is stopped (by a signal or a debugger)";
  return text;
}

std::string WaitReport::calls_of(Rank rank, std::uint64_t sequence) const {
  const PeerCalls calls = routes_.to[uindex(rank)]->calls_of(rank);
  // The words of a peer are not trusted.
  const bool is_rank =
      calls.receives_from == kAnySource || uindex(calls.receives_from) < routes_.to.size();
  if (calls.receives && is_rank)
    return calls.receives_from == kAnySource
               ? "waits for a message of any rank"
               : fmt::format("waits for a message of rank {}", index(calls.receives_from));
  if (sequence != 0 && calls.entered >= sequence) return "has entered it";
  if (calls.entered == 0)
    return calls.is_complete ? "has called no collective" : "has sent nothing of a collective";
  const std::string call = number_and_call(rank, calls.entered);
  if (!calls.is_complete) return "was last heard of in " + call;
  return calls.finished == calls.entered
             ? fmt::format("has finished {}, and is in no collective", call)
             : "is in " + call;
}

std::string WaitReport::call_after(Rank rank, std::uint64_t sequence) const {
  if (routes_.to[uindex(rank)] == nullptr) return "";
  const PeerCalls calls = routes_.to[uindex(rank)]->calls_of(rank);
  return calls.entered > sequence ? number_and_call(rank, calls.entered) : "";
}

std::string WaitReport::number_and_call(Rank rank, std::uint64_t sequence) const {
  CallRecord record;
  if (!routes_.to[uindex(rank)]->call_of(rank, sequence, record))
    return fmt::format("operation {}", sequence);
  return fmt::format("operation {}, {}", sequence, describe(record));
}

bool WaitReport::is_of_this_process(Rank rank) const {
  return me_.around != nullptr && me_.around->process_of(rank) == ::getpid();
}

bool WaitReport::is_stopped(Rank rank) const {
  const int pid = me_.around != nullptr ? me_.around->process_of(rank) : 0;
  return pid != 0 && probe::is_stopped(pid);
}

}  // namespace anyccl
