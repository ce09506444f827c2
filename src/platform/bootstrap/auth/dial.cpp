#include "platform/bootstrap/auth/dial.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace anyccl::bootstrap {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLongestPause{250};
constexpr milliseconds kLongestAttempt{30000};
constexpr milliseconds kFullQueuePause{1};
/// Until the next endpoint is tried, too: a connection takes no longer in a data centre, ...
constexpr milliseconds kConnectTime{50};
/// ... and a process that has not looked yet needs no more connections.
constexpr milliseconds kAnswerTime{500};
constexpr std::size_t kMostAttempts = 16;

// Errors that another try at the same endpoint cannot change.
bool is_final(const Status& why) {
  return why.code() == Code::invalid_argument || why.code() == Code::internal;
}

bool is_full_queue(const Status& why) {
  return why.code() == Code::timeout;
}

}  // namespace

void Dial::append_wanted(std::vector<pollfd>& entries) const {
  for (const Attempt& a : attempts_)
    entries.push_back({a.socket.get(), a.connected ? a.handshake.events() : short{POLLOUT}, 0});
}

int Dial::poll_ms(int most) const {
  if (committed()) return most;
  for (const Attempt& a : attempts_) most = a.due.poll_ms(most);
  return attempts_.size() < kMostAttempts ? next_start_.poll_ms(most) : most;
}

Status Dial::advance() {
  if (done()) return {};
  go_on_with_all();
  commit_to_best();
  start_attempts();
  commit_to_best();
  if (attempts_.empty()) ANYCCL_CHECK(shortage_);
  if (outcomes_.empty()) return error(Code::invalid_argument, "there is no address to try");
  const bool hopeless =
      std::all_of(outcomes_.begin(), outcomes_.end(), [](const Outcome& o) { return o.hopeless; });
  return hopeless ? Status(outcomes_.front().problem.code(), problems()) : Status();
}

void Dial::go_on_with_all() {
  for (std::size_t i = 0; i < attempts_.size();) {
    const Status status = advance_attempt(attempts_[i]);
    if (status.ok()) {
      ++i;
      continue;
    }
    const std::size_t endpoint = attempts_[i].endpoint;
    attempts_.erase(attempts_.begin() + static_cast<std::ptrdiff_t>(i));
    note_failure(endpoint, status);
  }
}

/// To an attempt whose other end has proved that it knows the secret; of several, to the one whose
/// address stands first.
void Dial::commit_to_best() {
  if (committed()) return;
  const auto best =
      std::min_element(attempts_.begin(), attempts_.end(), [](const Attempt& a, const Attempt& b) {
        return std::pair(!a.handshake.proved(), a.endpoint) <
               std::pair(!b.handshake.proved(), b.endpoint);
      });
  if (best == attempts_.end() || !best->handshake.proved()) return;
  Attempt chosen = std::move(*best);
  attempts_.clear();
  const std::size_t endpoint = chosen.endpoint;
  Status status = chosen.handshake.send_proof();
  if (status.ok()) status = advance_attempt(chosen);
  if (status.ok())
    attempts_.push_back(std::move(chosen));
  else
    note_failure(endpoint, status);
}

void Dial::start_attempts() {
  while (!committed() && attempts_.size() < kMostAttempts && next_start_.passed()) {
    if (next_ == target_.endpoints.size()) return end_round();
    const std::size_t endpoint = next_++;
    if (outcomes_[endpoint].hopeless || attempt_at(endpoint) != nullptr) continue;
    next_start_ = Deadline::in(kConnectTime);
    if (const Status status = start_attempt(endpoint); !status.ok()) note_failure(endpoint, status);
  }
}

void Dial::end_round() {
  next_ = 0;
  next_start_ = Deadline::in(pause_time_);
  pause_time_ = std::min(2 * pause_time_, kLongestPause);
}

Status Dial::start_attempt(std::size_t endpoint) {
  const bool encrypts = target_.encrypts && !target_.endpoints[endpoint].local();
  ANYCCL_TRY(Handshake handshake,
             Handshake::connector(secret_, target_.from, target_.to, encrypts, target_.meeting));
  Result<UniqueFd> opened = open_socket(target_.endpoints[endpoint]);
  shortage_ = opened.status().code() == Code::system_error ? opened.status() : Status();
  ANYCCL_TRY(UniqueFd socket, std::move(opened));
  ANYCCL_CHECK(note_way(endpoint, start_connect(socket.get(), target_.endpoints[endpoint])));
  Attempt attempt{endpoint, std::move(socket), std::move(handshake),
                  Deadline::in(outcomes_[endpoint].time), false};
  ANYCCL_CHECK(advance_attempt(attempt));
  attempts_.push_back(std::move(attempt));
  return {};
}

Status Dial::advance_attempt(Attempt& attempt) {
  const Endpoint& endpoint = target_.endpoints[attempt.endpoint];
  if (!attempt.connected) {
    ANYCCL_CHECK(check_connected(attempt));
    if (!attempt.connected) return {};
  }
  const Status s = attempt.handshake.advance(attempt.socket.get());
  outcomes_[attempt.endpoint].hopeless = attempt.handshake.refused();
  if (!s.ok()) return error(s.code(), "{}: {}", to_string(endpoint), s.message());
  const bool answered = attempt.handshake.proved() || attempt.handshake.committed();
  if (answered || !note_if_overdue(attempt)) return {};
  return error(Code::remote_error, "{}: it accepted the connection and did not answer",
               to_string(endpoint));
}

/// Sets `connected` if it is so now; it is ok, too, if it may still be. Errors: it failed, took too
/// long, or leads to another user's process.
Status Dial::check_connected(Attempt& attempt) {
  const Endpoint& endpoint = target_.endpoints[attempt.endpoint];
  pollfd entry{attempt.socket.get(), POLLOUT, 0};
  if (::poll(&entry, 1, 0) != 1) {
    if (!note_if_overdue(attempt)) return {};
    return error(Code::remote_error, "{}: no answer", to_string(endpoint));
  }
  ANYCCL_CHECK(note_way(attempt.endpoint, finish_connect(attempt.socket.get(), endpoint)));
  ANYCCL_CHECK(check_trust(attempt));
  attempt.connected = true;
  if (endpoint.local()) attempt.due = Deadline::never();
  next_start_ = endpoint.local() ? Deadline::never() : Deadline::in(kAnswerTime);
  return {};
}

/// `found`: what came of connecting.
Status Dial::note_way(std::size_t endpoint, Status found) {
  outcomes_[endpoint].refused = found.code() == Code::remote_error;
  outcomes_[endpoint].no_way = outcomes_[endpoint].refused || found.code() == Code::system_error;
  return found;
}

bool Dial::is_refused() const {
  const auto refused = [](const Outcome& o) { return o.refused; };
  const auto no_way = [](const Outcome& o) { return o.no_way; };
  return std::any_of(outcomes_.begin(), outcomes_.end(), refused) &&
         std::all_of(outcomes_.begin(), outcomes_.end(), no_way);
}

bool Dial::note_if_overdue(const Attempt& attempt) {
  if (!attempt.due.passed()) return false;
  milliseconds& time = outcomes_[attempt.endpoint].time;
  time = std::min(2 * time, kLongestAttempt);
  return true;
}

Status Dial::check_trust(const Attempt& attempt) const {
  if (target_.trust != Trust::same_user) return {};
  ANYCCL_TRY(const ucred peer, peer_of(attempt.socket.get()));
  if (peer.uid == ::geteuid()) return {};
  return error(Code::invalid_argument, "{} belongs to user {}, and this process is user {}",
               to_string(target_.endpoints[attempt.endpoint]), peer.uid, ::geteuid());
}

void Dial::note_failure(std::size_t endpoint, const Status& why) {
  outcomes_[endpoint].problem = why;
  outcomes_[endpoint].hopeless = outcomes_[endpoint].hopeless || is_final(why);
  if (is_full_queue(why)) next_ = endpoint;
  next_start_ = Deadline::in(is_full_queue(why) ? kFullQueuePause : milliseconds(0));
}

Connection Dial::take_connection() {
  Attempt& attempt = attempts_.front();
  const Endpoint& endpoint = target_.endpoints[attempt.endpoint];
  return {std::move(attempt.socket), target_.from,     attempt.handshake.session(),
          endpoint.local(),          endpoint.address, attempt.handshake.take_stream()};
}

const Dial::Attempt* Dial::attempt_at(std::size_t endpoint) const {
  const auto found = std::find_if(attempts_.begin(), attempts_.end(),
                                  [&](const Attempt& a) { return a.endpoint == endpoint; });
  return found == attempts_.end() ? nullptr : &*found;
}

std::string Dial::problem_of(std::size_t endpoint) const {
  const std::string place = to_string(target_.endpoints[endpoint]);
  if (const Attempt* const attempt = attempt_at(endpoint); attempt != nullptr) {
    if (!attempt->connected) return place + ": no answer";
    return place + (attempt->handshake.committed()
                        ? ": it answered and did not let this rank in"
                        : ": it accepted the connection and did not answer");
  }
  const Status& problem = outcomes_[endpoint].problem;
  return problem.ok() ? place + ": not tried" : std::string(problem.message());
}

std::string Dial::problems() const {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < outcomes_.size(); ++i) texts.push_back(problem_of(i));
  if (!target_.note.empty()) texts.push_back(target_.note);
  return fmt::format("{}", fmt::join(texts, "; "));
}

Result<Connection> wait_for_connection(Dial& dial, Deadline deadline, bool refusal_is_final) {
  for (std::vector<pollfd> entries;; entries.clear()) {
    ANYCCL_CHECK(dial.advance());
    if (dial.done()) return dial.take_connection();
    if (refusal_is_final && dial.is_refused())
      return error(Code::remote_error, "{}", dial.problems());
    if (deadline.passed()) return error(Code::timeout, "{}", dial.problems());
    dial.append_wanted(entries);
    ::poll(entries.data(), entries.size(), deadline.poll_ms(dial.poll_ms(1000)));
  }
}

}  // namespace anyccl::bootstrap
