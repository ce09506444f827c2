#include "platform/bootstrap/dial.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace anyccl::bootstrap {
namespace {

constexpr std::chrono::milliseconds kLongestPause{250};
constexpr std::chrono::milliseconds kLongestAttempt{30000};

// Errors that another try at the same endpoint cannot change.
bool is_final(const Status& why) {
  return why.code() == Code::invalid_argument || why.code() == Code::internal;
}

bool is_full_queue(const Status& why) {
  return why.code() == Code::timeout;
}

}  // namespace

pollfd Dial::wanted() const {
  if (!socket_) return {-1, 0, 0};
  return {socket_.get(), connected_ ? handshake_->events() : short{POLLOUT}, 0};
}

int Dial::poll_ms(int most) const {
  if (handshake_ && handshake_->committed()) return most;
  return socket_ ? attempt_.poll_ms(most) : pause_.poll_ms(most);
}

Status Dial::advance() {
  if (done() || (!socket_ && !pause_.passed())) return {};
  const Status status = socket_ ? go_on() : begin_attempt();
  if (!status.ok()) give_up_attempt(status);
  ANYCCL_CHECK(shortage_);
  const bool hopeless =
      std::all_of(outcomes_.begin(), outcomes_.end(), [](const Outcome& o) { return o.hopeless; });
  return hopeless ? Status(Code::invalid_argument, problems()) : Status();
}

Status Dial::begin_attempt() {
  ANYCCL_TRY(handshake_, Handshake::connector(secret_, target_.from, target_.to));
  connected_ = false;
  attempt_ = Deadline::in(attempt_time_);
  Result<UniqueFd> opened = open_socket(target_.endpoints[current_]);
  if (opened.status().code() == Code::system_error) shortage_ = opened.status();
  ANYCCL_TRY(socket_, std::move(opened));
  ANYCCL_CHECK(start_connect(socket_.get(), target_.endpoints[current_]));
  return go_on();
}

Status Dial::go_on() {
  const Endpoint& endpoint = target_.endpoints[current_];
  if (!connected_) {
    pollfd entry{socket_.get(), POLLOUT, 0};
    const bool decided = ::poll(&entry, 1, 0) == 1;
    if (!decided && attempt_.passed())
      return error(Code::remote_error, "no answer at {}", to_string(endpoint));
    if (!decided) return {};
    ANYCCL_CHECK(finish_connect(socket_.get(), endpoint));
    ANYCCL_CHECK(check_trust());
    connected_ = true;
  }
  if (Status s = handshake_->advance(socket_.get()); !s.ok())
    return error(s.code(), "{}: {}", to_string(endpoint), s.message());
  if (!handshake_->committed() && attempt_.passed())
    return error(Code::remote_error, "{}: it accepted the connection and said nothing",
                 to_string(endpoint));
  return {};
}

Status Dial::check_trust() const {
  if (target_.trust != Trust::same_user) return {};
  ANYCCL_TRY(const ucred peer, peer_of(socket_.get()));
  if (peer.uid == ::geteuid()) return {};
  return error(Code::invalid_argument, "{} belongs to user {}, and this process is user {}",
               to_string(target_.endpoints[current_]), peer.uid, ::geteuid());
}

void Dial::give_up_attempt(const Status& why) {
  socket_.reset();
  handshake_.reset();
  outcomes_[current_] = {std::string(why.message()), is_final(why)};
  if (is_full_queue(why)) {
    pause_ = Deadline::in(std::chrono::milliseconds(1));
    return;
  }
  const std::size_t count = target_.endpoints.size();
  bool round_over = false;
  for (std::size_t tried = 0; tried < count; ++tried) {
    current_ = (current_ + 1) % count;
    round_over = round_over || current_ == 0;
    if (!outcomes_[current_].hopeless) break;
  }
  if (!round_over) return;
  pause_ = Deadline::in(pause_time_);
  pause_time_ = std::min(2 * pause_time_, kLongestPause);
  attempt_time_ = std::min(2 * attempt_time_, kLongestAttempt);
}

Connection Dial::take() {
  return {std::move(socket_), target_.from, handshake_->session(),
          target_.endpoints[current_].local()};
}

std::string Dial::problems() const {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < outcomes_.size(); ++i) {
    if (!outcomes_[i].problem.empty())
      texts.push_back(outcomes_[i].problem);
    else if (i == current_)
      texts.push_back(to_string(target_.endpoints[i]) + ": no answer yet");
  }
  return fmt::format("{}", fmt::join(texts, "; "));
}

}  // namespace anyccl::bootstrap
