#include "platform/bootstrap/rendezvous/leader.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/log.hpp"
#include "platform/bootstrap/rendezvous/relay.hpp"

namespace anyccl::bootstrap {
namespace {

/// How long a leader tells others the table, ...
constexpr std::chrono::milliseconds kTellingTime{10000};
/// ... and how long when it is out of time, or has only a failure to tell: a rank that runs reads
/// it within milliseconds.
constexpr std::chrono::milliseconds kShortTellingTime{1000};

/// Polls what `entries` has, and the relay.
void serve_once(Relay& relay, std::vector<pollfd>& entries, int most_ms) {
  const std::size_t others = entries.size();
  relay.append_wanted(entries);
  if (::poll(entries.data(), entries.size(), relay.poll_ms(most_ms)) < 0)
    for (pollfd& entry : entries) entry.revents = 0;
  relay.progress(std::span(entries).subspan(others));
}

Result<FinalReply> await_answer(Uplink& up, Relay& relay, const Listeners* listeners) {
  std::vector<pollfd> entries;
  for (bool tells = false;;) {
    ANYCCL_TRY(std::optional<FinalReply> reply, up.progress());
    if (reply) return *std::move(reply);
    if (!tells && up.tells() && listeners != nullptr) relay.let_leaders_in(*listeners);
    tells = up.tells();
    entries.clear();
    up.append_wanted(entries);
    serve_once(relay, entries, up.poll_ms(1000));
    for (const Report& report : relay.take_reports()) up.take_report(report);
  }
}

Deadline telling_time(Frame kind, Deadline deadline) {
  const Deadline least = Deadline::in(kShortTellingTime);
  if (kind == Frame::failure) return least;
  return std::min(std::max(deadline, least), Deadline::in(kTellingTime));
}

Status tell(Relay& relay, FinalReply reply, Deadline deadline) {
  const Deadline due = telling_time(reply.kind, deadline);
  ANYCCL_CHECK(relay.answer(std::move(reply)));
  for (std::vector<pollfd> entries; !relay.all_told() && !due.passed(); entries.clear())
    serve_once(relay, entries, due.poll_ms(1000));
  return {};
}

}  // namespace

Result<FinalReply> lead(const RendezvousAddress& rendezvous, const Attendance& attendance,
                        const Listeners* listeners, UniqueFd host) {
  Relay relay(std::move(host), rendezvous.secret, rendezvous.trust);
  Uplink up(rendezvous, attendance, listeners != nullptr);
  Result<FinalReply> answer = await_answer(up, relay, listeners);
  if (answer.ok()) {
    ANYCCL_CHECK(tell(relay, *answer, attendance.deadline));
    return answer;
  }
  Result<FinalReply> failure = FinalReply::make(Frame::failure, failure_payload(answer.status()));
  if (!failure.ok() || !tell(relay, *std::move(failure), attendance.deadline).ok())
    log(LogSubsystem::net, "some ranks were not told: {}", answer.status().message());
  return answer;
}

}  // namespace anyccl::bootstrap
