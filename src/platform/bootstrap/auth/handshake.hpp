#pragma once
// A handshake proves to each end of a fresh connection that the other end knows the secret. Every
// connection that a Dial makes and an Acceptor accepts begins with one. A greeting of 40 bytes, an
// answer of 64 and two proofs of 32 are on the wire, and a handshake of TLS after them if the
// connection is encrypted. The owner polls: no function here waits.

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "anyccl/status.hpp"
#include "base/secure_stream.hpp"
#include "platform/bootstrap/socket/secret.hpp"
#include "platform/bootstrap/socket/wire.hpp"

namespace anyccl::bootstrap {

/// Raised when the messages below, Hello or frames change. The layouts of Greeting and Answer never
/// change, so that other versions can be told apart.
inline constexpr std::uint32_t kProtocol = 8;

/// `to` of a greeting to a root server, and to the rank that tells others its answer.
inline constexpr std::uint32_t kToRoot = 0xffffffff, kToRelay = 0xfffffffe;

/// The connector's first message.
struct Greeting {
  std::array<char, 8> magic{};
  std::uint32_t protocol = 0;
  std::uint32_t meeting = 0;       ///< Its number at the root server: a unique id's, or 0.
  std::uint32_t from = 0, to = 0;  ///< Ranks; `to` may be kToRoot or kToRelay.
  std::array<std::byte, 16> nonce{};
};

/// The acceptor's answer.
struct Answer {
  std::array<char, 8> magic{};
  std::uint32_t protocol = 0;
  std::uint32_t refusal = 0;  ///< A Refusal.
  std::array<std::byte, 16> nonce{};
  Mac proof{};  ///< Zero if the greeting is of another protocol, or with a refusal.
};

/// Why an acceptor does not even begin. Not authenticated: good for messages.
enum class Refusal : std::uint32_t {
  none,
  no_descriptors,  ///< Its process has no descriptor left for this connection.
  no_meeting,      ///< It has no meeting of this number, or no more.
};
/// What such an acceptor sends.
Answer refusal_of(Refusal why);

/// The secrets that an acceptor asks for: one, or that of the meeting which a greeting names.
class Secrets {
 public:
  Secrets(const Secret& one) : of_([one](std::uint32_t) { return one; }) {}
  /// `of`: none for a meeting that is not here.
  explicit Secrets(std::function<std::optional<Secret>(std::uint32_t meeting)> of)
      : of_(std::move(of)) {}
  std::optional<Secret> of(std::uint32_t meeting) const { return of_(meeting); }

 private:
  std::function<std::optional<Secret>(std::uint32_t)> of_;
};

/// One end of mutual authentication over a fresh connection, without waiting:
///
///   connector -> acceptor   greeting with a fresh nonce
///   acceptor -> connector   answer: its own nonce and its proof
///   connector -> acceptor   proof, or that it knows another secret
///   acceptor -> connector   accepted, proved as well
///
/// If both encrypt, a handshake of TLS follows, with the session as its key and the connector as
/// its client. What is encrypted is the same on both sides before they meet: nothing on the wire
/// decides.
///
/// A connector that tries several addresses of one acceptor has several handshakes and commits
/// itself in the first of them in which the acceptor has proved itself, so that the acceptor takes
/// one.
///
/// A proof is an HMAC with the secret over who proves it, both nonces and both ranks, so no message
/// can be replayed in another connection, direction or place.
class Handshake {
 public:
  static Result<Handshake> connector(const Secret& secret, std::uint32_t from, std::uint32_t to,
                                     bool encrypts = false, std::uint32_t meeting = 0);
  /// Refuses greetings that are not to `to`, and, once they have proved themselves, ranks that are
  /// not welcome now; null: all are.
  using Welcome = std::function<bool(std::uint32_t from)>;
  static Result<Handshake> acceptor(Secrets secrets, std::uint32_t to, Welcome welcome = {},
                                    bool encrypts = false);

  /// Goes on as far as the nonblocking socket allows. Errors: remote_error when the peer closed the
  /// connection, has no such meeting or is not welcome; invalid_argument when it is no anyccl
  /// process, knows another secret or is another version; system_error, also when it has no
  /// descriptor left.
  Status advance(int fd);
  bool done() const { return phase_ == Phase::done; }
  /// The events to poll(2) for until done().
  short events() const;
  /// Connector: the acceptor has proved that it knows the secret; advance() goes on after
  /// send_proof().
  bool proved() const { return phase_ == Phase::proved; }
  /// Connector, once proved(): makes it committed(). The next advance() sends the proof.
  Status send_proof();
  /// Connector: the acceptor may have taken this connection, so it must not be given up.
  bool committed() const { return phase_ == Phase::accepted || phase_ == Phase::encrypt || done(); }

  /// Connector: the acceptor has no room for this connection.
  bool refused() const { return answer_.refusal != 0; }

  /// Acceptor: the peer said, or showed by a wrong proof, that it knows another secret.
  bool met_another_secret() const { return met_another_secret_; }

  std::uint32_t from() const { return greeting_.from; }
  std::uint32_t meeting() const { return greeting_.meeting; }
  /// When done: a key that only the two ends know, if the secret is one.
  const Mac& session() const { return session_; }
  /// When done: what encrypts the connection from now on; null: nothing.
  std::unique_ptr<SecureStream> take_stream() { return std::move(stream_); }

 private:
  enum class Phase { greeting, answer, proof, proved, accepted, refuse, finish, encrypt, done };

  Handshake(Secrets secrets, bool connects, bool encrypts)
      : secrets_(std::move(secrets)), connects_(connects), encrypts_(encrypts) {}
  Status check_beginning() const;
  Status on_message();
  Status on_greeting();
  /// Checks the acceptor's proof. This end's own is left to send_proof().
  Status on_answer();
  Status on_proof();
  Status on_accepted();
  Status finish_or_encrypt();
  Status encrypt(int fd);
  /// Sends `message` before advance() fails.
  void refuse(Bytes message, Status why);
  Result<Mac> prove(std::string_view label) const;
  Status check_proof(std::string_view label, const Mac& claimed) const;

  Secrets secrets_;
  Secret secret_;  // the acceptor's: from the greeting on
  bool connects_, encrypts_;
  Welcome welcome_;
  Phase phase_ = Phase::greeting;
  Greeting greeting_;
  Answer answer_;
  Mac session_{};
  std::unique_ptr<SecureStream> stream_;
  bool met_another_secret_ = false;
  Status why_refused_;
  Inbox in_;
  Outbox out_;
};

}  // namespace anyccl::bootstrap
