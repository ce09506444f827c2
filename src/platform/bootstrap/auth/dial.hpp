#pragma once
// A dial connects a rank with a peer, with the leader of a host or with the root server, at one of
// several addresses. Ranks dial while they join, while they connect with their peers, and on demand
// later. A dial has no thread and never waits; wait_for_connection() waits in the calling thread.
// Each connection begins with the connector's end of a handshake (handshake.hpp).

#include <poll.h>

#include <chrono>
#include <string>
#include <vector>

#include "base/deadline.hpp"
#include "platform/bootstrap/auth/handshake.hpp"
#include "platform/bootstrap/socket/socket.hpp"

namespace anyccl::bootstrap {

/// A connection whose other end has proved that it knows the secret.
struct Connection {
  UniqueFd socket;
  std::uint32_t from =
      0;  ///< The connector's rank, as it says: not yet checked against the group's size.
  Mac session{};
  bool local = false;  ///< A unix socket.
  Address to = {};     ///< Where it was made to; family 0 for a unix socket, and at the acceptor.
  std::unique_ptr<SecureStream> secure = {};  ///< Null if it is not encrypted.
  std::uint32_t meeting = 0;                  ///< As in Greeting; at the acceptor only.
};

/// A condition for taking part, besides knowing the secret.
enum class Trust {
  secret,
  same_user,  ///< Unix sockets only: the other process must run as this user.
};

/// Gets one authenticated connection to whoever listens at any of several endpoints, without
/// waiting: begins with the first, goes on to the next at a failure or when there is no answer
/// after a moment, with several attempts under way, again and again. It uses the first one in which
/// the other end proves that it knows the secret; only there does it prove the same, so the other
/// end takes no second connection. A unix socket that connects leads to the right process, so
/// nothing else is tried beside it. The caller polls and keeps the deadline.
class Dial {
 public:
  struct Target {
    std::vector<Endpoint> endpoints;
    std::uint32_t from = 0, to = 0;  ///< As in Greeting.
    Trust trust = Trust::secret;
    std::string note = {};      ///< What problems() adds; may be empty.
    bool encrypts = false;      ///< Connections over the network.
    std::uint32_t meeting = 0;  ///< As in Greeting.
  };
  Dial(const Secret& secret, Target target) : secret_(secret), target_(std::move(target)) {}

  /// Appends the events to poll for: perhaps none.
  void append_wanted(std::vector<pollfd>& entries) const;
  /// When to call advance() even if nothing happened: milliseconds, at most `most`.
  int poll_ms(int most) const;
  /// Goes on as far as possible. Errors: there is no descriptor for a socket; no endpoint can ever
  /// work, and the message says why for each.
  Status advance();
  /// The other end may have taken this connection.
  bool committed() const {
    return attempts_.size() == 1 && attempts_.front().handshake.committed();
  }
  /// Nobody listens where the other end did: at every endpoint the last attempt was refused, or
  /// found no way there.
  bool is_refused() const;
  bool done() const { return committed() && attempts_.front().handshake.done(); }
  Connection take_connection();
  /// Why there is no connection yet, for each endpoint.
  std::string problems() const;

 private:
  struct Attempt {
    std::size_t endpoint = 0;
    UniqueFd socket;
    Handshake handshake;
    Deadline due;  ///< For the proof of the other end.
    bool connected = false;
  };
  struct Outcome {
    Status problem;  ///< Why the last attempt failed.
    bool hopeless = false;
    bool refused = false;                  ///< Nobody listens there.
    bool no_way = false;                   ///< There is no way there, or nobody listens.
    std::chrono::milliseconds time{3000};  ///< How long the next attempt waits.
  };

  void go_on_with_all();
  void commit_to_best();
  void start_attempts();
  /// Lets the next round begin after a pause; attempts that are under way go on.
  void end_round();
  Status start_attempt(std::size_t endpoint);
  Status advance_attempt(Attempt& attempt);
  Status check_connected(Attempt& attempt);
  Status note_way(std::size_t endpoint, Status found);
  /// Whether its time is over; the next one at its endpoint gets more.
  bool note_if_overdue(const Attempt& attempt);
  Status check_trust(const Attempt& attempt) const;
  /// Keeps `why` for problems(). The next attempt may start at once, or in a moment at the same
  /// endpoint if its queue was full.
  void note_failure(std::size_t endpoint, const Status& why);
  const Attempt* attempt_at(std::size_t endpoint) const;
  std::string problem_of(std::size_t endpoint) const;

  Secret secret_;
  Target target_;
  std::vector<Outcome> outcomes_ = std::vector<Outcome>(target_.endpoints.size());
  std::vector<Attempt> attempts_;  // under way
  std::size_t next_ = 0;           // the endpoint to try next; past the end: this round is over
  Deadline next_start_ = Deadline::in(std::chrono::nanoseconds(0));
  std::chrono::milliseconds pause_time_{2};  // between rounds
  Status shortage_;                          // no socket could be opened
};

/// Polls until `dial` has a connection. Errors: as Dial::advance(); remote_error when nobody
/// listens, if a `refusal_is_final`; timeout. The last two say what dial.problems() does.
Result<Connection> wait_for_connection(Dial& dial, Deadline deadline, bool refusal_is_final);

}  // namespace anyccl::bootstrap
