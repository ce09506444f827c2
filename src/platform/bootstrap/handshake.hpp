#pragma once

#include <array>
#include <cstdint>

#include "anyccl/status.hpp"
#include "platform/bootstrap/secret.hpp"
#include "platform/bootstrap/wire.hpp"

namespace anyccl::bootstrap {

/// Raised when the messages below, Hello or frames change. The layouts of Greeting and Answer never
/// change, so that other versions can be told apart.
inline constexpr std::uint32_t kProtocol = 4;

/// `to` of a greeting to a root server.
inline constexpr std::uint32_t kToRoot = 0xffffffff;

/// The connector's first message.
struct Greeting {
  std::array<char, 8> magic{};
  std::uint32_t protocol = 0;
  std::uint32_t unused = 0;
  std::uint32_t from = 0, to = 0;  ///< Ranks; `to` may be kToRoot.
  std::array<std::byte, 16> nonce{};
};

/// The acceptor's answer.
struct Answer {
  std::array<char, 8> magic{};
  std::uint32_t protocol = 0;
  std::uint32_t unused = 0;
  std::array<std::byte, 16> nonce{};
  Mac proof{};  ///< Zero if the greeting is of another protocol.
};

/// One end of mutual authentication over a fresh connection, without waiting:
///
///   connector -> acceptor   greeting with a fresh nonce
///   acceptor -> connector   answer: its own nonce and its proof
///   connector -> acceptor   proof
///   acceptor -> connector   accepted, proved as well
///
/// A proof is an HMAC with the secret over who proves it, both nonces and both ranks, so no message
/// can be replayed in another connection, direction or place.
class Handshake {
 public:
  static Result<Handshake> connector(const Secret& secret, std::uint32_t from, std::uint32_t to);
  /// Refuses greetings that are not to `to`.
  static Result<Handshake> acceptor(const Secret& secret, std::uint32_t to);

  /// Goes on as far as the nonblocking socket allows. Errors: remote_error when the peer closed the
  /// connection; invalid_argument when it is no anyccl process, knows another secret or is another
  /// version; system_error.
  Status advance(int fd);
  bool done() const { return phase_ == Phase::done; }
  /// The events to poll(2) for until done().
  short events() const;
  /// Connector: the acceptor may have taken this connection, so it must not be given up.
  bool committed() const { return phase_ == Phase::accepted || done(); }

  /// Acceptor: the peer has been shown this side's proof and has not given its own.
  bool awaits_proof() const { return phase_ == Phase::proof; }

  std::uint32_t from() const { return greeting_.from; }
  /// When done: a key that only the two ends know, if the secret is one.
  const Mac& session() const { return session_; }

 private:
  enum class Phase { greeting, answer, proof, accepted, refuse, finish, done };

  explicit Handshake(const Secret& secret) : secret_(secret) {}
  Status on_message();
  Status on_greeting();
  Status on_answer();
  Status on_proof();
  Status on_accepted();
  Result<Mac> prove(std::string_view label) const;
  Status check_proof(std::string_view label, const Mac& claimed) const;

  Secret secret_;
  Phase phase_ = Phase::greeting;
  Greeting greeting_;
  Answer answer_;
  Mac session_{};
  Inbox in_;
  Outbox out_;
};

}  // namespace anyccl::bootstrap
