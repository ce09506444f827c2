#include "platform/bootstrap/leader.hpp"

#include "base/error.hpp"
#include "base/log.hpp"
#include "platform/bootstrap/relay.hpp"
#include "platform/bootstrap/uplink.hpp"

namespace anyccl::bootstrap {
namespace {

/// How long a leader tells others the answer.
constexpr std::chrono::milliseconds kTellingTime{10000};

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
    for (const Report& report : relay.take_reports()) up.report(report);
  }
}

Status tell(Relay& relay, FinalReply reply) {
  ANYCCL_CHECK(relay.answer(std::move(reply)));
  const Deadline due = Deadline::in(kTellingTime);
  for (std::vector<pollfd> entries; !relay.all_told() && !due.passed(); entries.clear())
    serve_once(relay, entries, due.poll_ms(1000));
  return {};
}

}  // namespace

Result<FinalReply> lead(const RendezvousAddress& rendezvous, const Hello& mine, Deadline deadline,
                        const Listeners* listeners, UniqueFd host) {
  Relay relay(std::move(host), rendezvous.secret, rendezvous.trust);
  Uplink up(rendezvous, mine, listeners != nullptr, deadline);
  Result<FinalReply> answer = await_answer(up, relay, listeners);
  if (answer.ok()) {
    ANYCCL_CHECK(tell(relay, *answer));
    return answer;
  }
  Result<FinalReply> failure = FinalReply::make(Frame::failure, failure_payload(answer.status()));
  if (!failure.ok() || !tell(relay, *std::move(failure)).ok())
    log(LogSubsystem::net, "some ranks were not told: {}", answer.status().message());
  return answer;
}

}  // namespace anyccl::bootstrap
