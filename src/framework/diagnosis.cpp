#include "framework/diagnosis.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace anyccl {
namespace {

/// "in operation 7, all_reduce of 3 f32, sum".
std::string place_of(const Execution* collective) {
  if (collective == nullptr) return "in a send or receive";
  if (!collective->has_started()) return "in an operation that has not started";
  return fmt::format("in operation {}, {}", collective->sequence(), describe(collective->record()));
}

const char* ending(PeerState state) {
  return state == PeerState::left ? "has left the communicator" : "died";
}

/// One has sizes of each block, and the other not.
bool forms_only(const CallRecord& a, const CallRecord& b) {
  const auto is = [](const CallRecord& call, Collective what) {
    return static_cast<Collective>(call.collective) == what;
  };
  return (is(a, Collective::all_to_all) && is(b, Collective::all_to_all_v)) ||
         (is(b, Collective::all_to_all) && is(a, Collective::all_to_all_v));
}

}  // namespace

Status Diagnosis::news() {
  Status problem;
  for (Transport* t : transports_)
    if (Status found = t->check(); problem.ok()) problem = std::move(found);
  return problem;
}

Status Diagnosis::lateness(const Task& task, const Execution* collective) const {
  if (!task.is_late()) return {};
  std::vector<Rank> ranks;
  if (collective == nullptr || collective->has_started()) task.awaited(ranks);
  std::string names;
  for (std::size_t i = 0; i < ranks.size(); ++i)
    names += (i > 0 ? ", " : "") + names_[uindex(ranks[i])];
  if (names.empty())
    names = collective == nullptr ? "a message from any rank" : "what was called before it";
  return error(Code::timeout, "timeout after {} ms: {} waits for {} {}", task.time_limit().count(),
               names_[uindex(me_)], names, place_of(collective));
}

Status Diagnosis::no_sender() {
  if (route_.size() == 1) return {};
  ANYCCL_CHECK(news());
  for (Transport* t : transports_)
    for (const Rank peer : t->peers())
      if (t->state(peer) == PeerState::present) return {};
  // What they did before they went can be seen by now.
  if (messages_.advance() || !messages_.waits_for_anyone()) return {};
  return error(Code::remote_error, "{} waits for a message of any rank, but all others are gone",
               names_[uindex(me_)]);
}

Status Diagnosis::absence(std::span<const Rank> wanted) const {
  for (const Rank peer : wanted)
    if (Transport* const t = route_[uindex(peer)]; t != nullptr)
      if (const PeerState state = t->state(peer); state != PeerState::present)
        return error(Code::remote_error, "{} {}", names_[uindex(peer)], ending(state));
  return {};
}

Status Diagnosis::trouble(Task& task, const Execution* collective) {
  const Status problem = news();
  if (collective != nullptr) ANYCCL_CHECK(compare_calls(collective->record()));
  if (!problem.ok() && !may_still_be_explained(problem)) return problem;
  ANYCCL_CHECK(lateness(task, collective));
  std::vector<Rank> ranks;
  task.awaited(ranks);
  const auto gone = std::find_if(ranks.begin(), ranks.end(), [&](Rank r) {
    Transport* t = route_[uindex(r)];
    return t != nullptr && t->state(r) != PeerState::present;
  });
  if (gone == ranks.end()) return {};
  const PeerState state = route_[uindex(*gone)]->state(*gone);
  // What it did before it went can be seen by now: if that is not enough, nothing will be.
  const bool moved = collective != nullptr ? task.advance() : messages_.advance();
  if (moved || task.done()) return {};
  const std::string what = place_of(collective);
  return error(Code::remote_error, "{} {} while {} waits for it {}", names_[uindex(*gone)],
               ending(state), names_[uindex(me_)], what);
}

bool Diagnosis::may_still_be_explained(const Status& problem) {
  if (problem.code() != Code::invalid_usage) return false;
  if (puzzled_until_.is_never()) puzzled_until_ = Deadline::in(std::chrono::milliseconds(500));
  return !puzzled_until_.passed();
}

Status Diagnosis::compare_calls(const CallRecord& mine) const {
  for (int r = 0; r < static_cast<int>(route_.size()); ++r) {
    Transport* t = route_[static_cast<std::size_t>(r)];
    CallRecord theirs;
    if (t == nullptr || !t->call_of(Rank{r}, mine.sequence, theirs) || theirs == mine) continue;
    const bool plans_only = theirs.collective == mine.collective && theirs.dtype == mine.dtype &&
                            theirs.op == mine.op && theirs.root == mine.root &&
                            theirs.count == mine.count;
    return error(Code::invalid_usage,
                 "operation {} differs between ranks: rank {} called {}, rank {} called {}{}",
                 mine.sequence, index(me_), describe(mine), r, describe(theirs),
                 forms_only(mine, theirs)
                     ? ": blocks of different sizes (splits of all_to_all_single) are given on all "
                       "ranks or on none"
                 : !plans_only ? ""
                 : has_known_sizes(static_cast<Collective>(mine.collective))
                     ? " (with other counts, or another algorithm or protocol)"
                     : " (with another algorithm or protocol)");
  }
  return {};
}

}  // namespace anyccl
