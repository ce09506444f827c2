#pragma once

#include <poll.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/deadline.hpp"
#include "platform/bootstrap/handshake.hpp"
#include "platform/bootstrap/socket.hpp"

namespace anyccl::bootstrap {

/// A connection whose other end has proved that it knows the secret.
struct Connection {
  UniqueFd socket;
  std::uint32_t from =
      0;  ///< The connector's rank, as it says: not yet checked against the group's size.
  Mac session{};
  bool local = false;  ///< A unix socket.
};

/// A condition for taking part, besides knowing the secret.
enum class Trust {
  secret,
  same_user,  ///< Unix sockets only: the other process must run as this user.
};

/// Gets one authenticated connection to whoever listens at any of several endpoints: tries them in
/// turn, again and again, without waiting. The caller polls and keeps the deadline.
class Dial {
 public:
  struct Target {
    std::vector<Endpoint> endpoints;
    std::uint32_t from = 0, to = 0;  ///< As in Greeting.
    Trust trust = Trust::secret;
  };
  Dial(const Secret& secret, Target target) : secret_(secret), target_(std::move(target)) {}

  /// The event to poll for; fd is -1 while it pauses between attempts.
  pollfd wanted() const;
  /// When to call advance() even if nothing happened: milliseconds, at most `most`.
  int poll_ms(int most) const;
  /// Goes on as far as possible. Errors: there is no descriptor for a socket; no endpoint can ever
  /// work, and the message says why for each.
  Status advance();
  bool done() const { return handshake_.has_value() && handshake_->done(); }
  Connection take();
  /// Why there is no connection yet, for each endpoint.
  std::string problems() const;

 private:
  Status begin_attempt();
  Status go_on();
  Status check_trust() const;
  void give_up_attempt(const Status& why);

  Secret secret_;
  Target target_;
  struct Outcome {
    std::string problem;
    bool hopeless = false;
  };
  std::vector<Outcome> outcomes_ = std::vector<Outcome>(target_.endpoints.size());
  std::size_t current_ = 0;
  UniqueFd socket_;
  Status shortage_;  // no socket could be opened
  bool connected_ = false;
  std::optional<Handshake> handshake_;
  Deadline pause_ = Deadline::in(std::chrono::nanoseconds(0));
  Deadline attempt_;
  std::chrono::milliseconds pause_time_{2}, attempt_time_{3000};
};

}  // namespace anyccl::bootstrap
