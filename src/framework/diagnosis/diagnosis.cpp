#include "framework/diagnosis/diagnosis.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/log.hpp"

namespace anyccl {
namespace {

std::string ending(Transport& transport, Rank peer) {
  switch (transport.state(peer)) {
    case PeerState::left:
      return "has left the communicator";
    case PeerState::dead:
      return "died" + transport.how_ended(peer);
    case PeerState::silent:
      return "does not answer";
    default:
      return "died or has left the communicator";
  }
}

/// Whether one has sizes of each block, and the other not; nothing else is compared.
bool forms_only(const CallRecord& a, const CallRecord& b) {
  const auto is = [](const CallRecord& call, Collective what) {
    return static_cast<Collective>(call.collective) == what;
  };
  return (is(a, Collective::all_to_all) && is(b, Collective::all_to_all_v)) ||
         (is(b, Collective::all_to_all) && is(a, Collective::all_to_all_v));
}

/// Sequence and history aside.
bool same_call(CallRecord a, const CallRecord& b) {
  a.sequence = b.sequence;
  a.history = b.history;
  return a == b;
}

Status difference(Rank me, const CallRecord& mine, Rank peer, const CallRecord& theirs) {
  CallRecord planned = mine;
  planned.plan = theirs.plan;
  const bool plans_only = same_call(planned, theirs);
  return error(Code::invalid_usage,
               "operation {} differs between ranks: rank {} called {}, rank {} called {}{}",
               mine.sequence, index(me), describe(mine), index(peer), describe(theirs),
               forms_only(mine, theirs)
                   ? ": blocks of different sizes (splits of all_to_all_single) are given on all "
                     "ranks or on none"
               : mine.parts != theirs.parts
                   ? ": the calls of a group must be the same on all ranks, or set ANYCCL_FUSION=0"
               : !plans_only ? ""
               : has_known_sizes(static_cast<Collective>(mine.collective))
                   ? " (with other counts, or another algorithm or protocol)"
               : mine.parts > 0
                   ? " (of other sizes, or with another algorithm or protocol)"
                   : " (with another algorithm, protocol, or type of sums or results, or, with "
                     "device queues, memory of a device on one of the two)");
}

Status made_different_calls(Rank me, Rank peer, std::uint64_t before) {
  return error(Code::invalid_usage, "rank {} and rank {} made different calls before operation {}",
               index(me), index(peer), before);
}

/// How long a peer may take to say more. Records come as soon as a peer that waits has a core,
/// which on a busy machine takes long.
constexpr auto kMismatchTime = std::chrono::milliseconds(500), kRecordsTime = 20 * kMismatchTime;

}  // namespace

Status Diagnosis::poll_control() {
  Status problem;
  for (Transport* t : routes_.transports)
    if (Status found = t->check(); problem.ok()) problem = std::move(found);
  return problem;
}

Status Diagnosis::reported() {
  Status problem = poll_control();
  return problem.ok() || is_in_mismatch_grace(problem) ? Status() : problem;
}

Status Diagnosis::check_timeout(Operation& operation, const Execution* collective) const {
  const bool has_own = operation.time_limit().count() > 0;
  const auto limit = has_own ? operation.time_limit() : membership_.wait_limits.most;
  if (operation.done() || limit.count() == 0) return {};
  if (has_own ? !operation.is_late()
              : !is_waited_for(operation, collective) || operation.look(Clock::now()).total < limit)
    return {};
  return error(Code::timeout, "timeout after {} ms: {}", limit.count(),
               report_.text(operation, collective));
}

/// Whether something here waits for `operation`, as always for a collective; if not, its wait
/// counts anew. A message may be one that a rank receives some time or other.
bool Diagnosis::is_waited_for(Operation& operation, const Execution* collective) const {
  if (collective != nullptr || waits_for_all_ || operation.is_awaited()) return true;
  operation.rest();
  return false;
}

/// Operations that wait at the same time, such as the receives of a group, have one warning, and
/// programs whose waits often last so long have one in a while.
void Diagnosis::warn(Operation& operation, const Execution* collective) {
  constexpr int kInAWhile = 6;
  const auto after = membership_.wait_limits.warn_after;
  if (after.count() == 0 || operation.is_reported() || !is_waited_for(operation, collective))
    return;
  const Clock::time_point now = Clock::now();
  const Operation::Age age = operation.look(now);
  if (age.quiet < after) return;
  Warned& last = warned_[collective != nullptr ? 1 : 0];
  const bool together = now - age.quiet - last.since < after / 10;
  if (together) operation.set_reported();
  if (together || now - last.at < last.pause) return;
  operation.set_reported();
  last = {now, now - age.quiet,
          std::clamp<Clock::duration>(2 * last.pause, after, kInAWhile * after)};
  has_warned_ = true;
  const std::chrono::duration<double> quiet = age.quiet;
  log(LogLevel::warn, "{}: no progress for {:.3g} s: {}", membership_.label, quiet.count(),
      report_.text(operation, collective));
}

Status Diagnosis::check_any_source() {
  if (routes_.to.size() == 1) return {};
  ANYCCL_CHECK(poll_control());
  for (Transport* t : routes_.transports)
    for (const Rank peer : t->peers())
      if (t->state(peer) == PeerState::present) return {};
  // Everything they did before they went can be seen by now.
  if (messages_.advance() || !messages_.waits_for_anyone()) return {};
  ANYCCL_CHECK(reported());
  return error(Code::remote_error, "{} waits for a message of any rank, but all others are gone",
               names_[uindex(me_)]);
}

std::string Diagnosis::reason(PeerState state) const {
  if (state != PeerState::silent) return "";
  return fmt::format(
      ": its host has acknowledged nothing for {} s; is it powered off, or the network cut?",
      membership_.wait_limits.silence.count());
}

Status Diagnosis::absence(std::span<const Rank> wanted) const {
  for (const Rank peer : wanted)
    if (Transport* const t = routes_.to[uindex(peer)]; t != nullptr)
      if (const PeerState state = t->state(peer); state != PeerState::present)
        return error(Code::remote_error, "{} {}{}", names_[uindex(peer)], ending(*t, peer),
                     reason(state));
  return {};
}

Status Diagnosis::check_stalled(Operation& operation, const Execution* collective) {
  Status problem = poll_control(), unexplained;
  if (collective != nullptr) ANYCCL_CHECK(compare_calls(collective->record(), unexplained));
  if (problem.ok()) problem = unexplained;
  if (!problem.ok() && !is_in_mismatch_grace(problem, !unexplained.ok())) return problem;
  ANYCCL_CHECK(check_timeout(operation, collective));
  std::vector<Rank> ranks;
  operation.awaited(ranks);
  for (const Rank r : ranks)
    if (Transport* const t = routes_.to[uindex(r)]; t != nullptr) t->expect(r);
  const auto gone = std::find_if(ranks.begin(), ranks.end(), [&](Rank r) {
    Transport* t = routes_.to[uindex(r)];
    return t != nullptr && t->state(r) != PeerState::present;
  });
  if (gone == ranks.end()) return warn(operation, collective), Status();
  const PeerState state = routes_.to[uindex(*gone)]->state(*gone);
  // Everything it did before it went can be seen by now: if that is not enough, nothing will be.
  const bool moved = collective != nullptr ? operation.advance() : messages_.advance();
  if (moved || operation.done()) return {};
  ANYCCL_CHECK(reported());
  const std::string what = WaitReport::where(operation, collective);
  return error(Code::remote_error, "{} {} while {} waits for it {}{}", names_[uindex(*gone)],
               ending(*routes_.to[uindex(*gone)], *gone), names_[uindex(me_)], what, reason(state));
}

Status Diagnosis::glance(std::uint64_t sequence) const {
  Status problem;
  for (Transport* t : routes_.transports)
    if (Status found = t->glance(); problem.ok() && !t->is_vague()) problem = std::move(found);
  for (std::size_t r = 0; r < routes_.to.size(); ++r) {
    if (routes_.to[r] == nullptr) continue;
    const Rank peer{static_cast<std::int32_t>(r)};
    ANYCCL_CHECK(compare_known_calls(peer, sequence));
    if (problem.ok()) problem = unread_by(peer);
  }
  return problem;
}

Status Diagnosis::unread_by(Rank peer) const {
  Transport& t = *routes_.to[uindex(peer)];
  const std::uint64_t sequence = t.unread_by(peer);
  if (sequence == 0) return {};
  CallRecord mine;
  const bool is_known = t.known_call_of(me_, sequence, mine);
  return error(Code::remote_error, "{} {} and has not read what {} gave in operation {}{}{}{}",
               names_[uindex(peer)], ending(t, peer), names_[uindex(me_)], sequence,
               is_known ? ", " : "", is_known ? describe(mine) : "", reason(t.state(peer)));
}

/// The newest record that both have says whether all calls before it were the same.
Status Diagnosis::compare_known_calls(Rank peer, std::uint64_t sequence) const {
  Transport& t = *routes_.to[uindex(peer)];
  Status different;
  for (std::uint64_t back = 0; back < std::min<std::uint64_t>(sequence, kCallHistory); ++back) {
    CallRecord mine, theirs;
    if (!t.known_call_of(me_, sequence - back, mine) ||
        !t.known_call_of(peer, sequence - back, theirs))
      continue;
    if (theirs == mine) return different;
    if (!same_call(mine, theirs)) return difference(me_, mine, peer, theirs);
    different = made_different_calls(me_, peer, sequence - back);
  }
  return different;
}

bool Diagnosis::is_in_mismatch_grace(const Status& problem, bool unexplained) {
  if (problem.code() != Code::invalid_usage) return false;
  if (mismatch_since_ == Clock::time_point()) mismatch_since_ = Clock::now();
  const auto vague = [](const Transport* t) { return t->is_vague(); };
  const bool is_vague =
      unexplained || std::any_of(routes_.transports.begin(), routes_.transports.end(), vague);
  return Clock::now() - mismatch_since_ < (is_vague ? kRecordsTime : kMismatchTime);
}

Status Diagnosis::compare_calls(const CallRecord& mine, Status& unexplained) const {
  for (int r = 0; r < static_cast<int>(routes_.to.size()); ++r) {
    Transport* t = routes_.to[static_cast<std::size_t>(r)];
    CallRecord theirs;
    if (t == nullptr || !t->call_of(Rank{r}, mine.sequence, theirs) || theirs == mine) continue;
    if (!same_call(mine, theirs)) return difference(me_, mine, Rank{r}, theirs);
    ANYCCL_CHECK(compare_earlier_calls(Rank{r}, mine.sequence, unexplained));
  }
  return {};
}

/// Both ranks are in the same call, but their calls before it differ. A rank that reads nothing of
/// its peers, as a root of a broadcast, has completed such a call. `unexplained`: if no record says
/// which.
Status Diagnosis::compare_earlier_calls(Rank peer, std::uint64_t sequence,
                                        Status& unexplained) const {
  Transport& t = *routes_.to[uindex(peer)];
  for (std::uint64_t s = sequence - std::min<std::uint64_t>(sequence, kCallHistory) + 1;
       s < sequence; ++s) {
    CallRecord mine, theirs;
    if (t.call_of(me_, s, mine) && t.call_of(peer, s, theirs) && !same_call(mine, theirs))
      return difference(me_, mine, peer, theirs);
  }
  unexplained = made_different_calls(me_, peer, sequence);
  return {};
}

}  // namespace anyccl
