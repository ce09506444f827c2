#include "platform/bootstrap/auth/handshake.hpp"

#include <poll.h>

#include <algorithm>

#include "base/error.hpp"
#include "platform/tls/tls.hpp"

namespace anyccl::bootstrap {
namespace {

constexpr std::array<char, 8> kGreets{'a', 'n', 'y', 'c', 'c', 'l', '?', '\n'};
constexpr std::array<char, 8> kAnswers{'a', 'n', 'y', 'c', 'c', 'l', '!', '\n'};

/// In the place of the connector's proof.
constexpr std::string_view kOtherSecret = "anyccl: I know another secret.\n\n";
static_assert(kOtherSecret.size() == sizeof(Mac));

Bytes other_secret() {
  return std::as_bytes(std::span(kOtherSecret));
}

Status not_anyccl() {
  return error(Code::invalid_argument, "it is not an anyccl process");
}

Status refused_because(std::uint32_t refusal) {
  if (refusal == static_cast<std::uint32_t>(Refusal::no_descriptors))
    return error(Code::system_error,
                 "it refused the connection, as its process has no descriptor left (`ulimit -n` "
                 "there)");
  if (refusal == static_cast<std::uint32_t>(Refusal::no_meeting))
    return error(
        Code::remote_error,
        "the group of this unique id is formed already, or the process that made the id has "
        "given it up");
  return error(Code::system_error, "it refused the connection for a reason of number {}", refusal);
}

}  // namespace

Answer refusal_of(Refusal why) {
  Answer answer;
  answer.magic = kAnswers;
  answer.protocol = kProtocol;
  answer.refusal = static_cast<std::uint32_t>(why);
  return answer;
}

Result<Handshake> Handshake::connector(const Secret& secret, std::uint32_t from, std::uint32_t to,
                                       bool encrypts, std::uint32_t meeting) {
  Handshake made(secret, true, encrypts);
  made.secret_ = secret;
  made.greeting_.magic = kGreets;
  made.greeting_.protocol = kProtocol;
  made.greeting_.meeting = meeting;
  made.greeting_.from = from;
  made.greeting_.to = to;
  ANYCCL_CHECK(random_bytes(made.greeting_.nonce));
  made.out_.put(bytes_of(made.greeting_));
  made.in_.expect(sizeof(Answer));
  made.phase_ = Phase::answer;
  return made;
}

Result<Handshake> Handshake::acceptor(Secrets secrets, std::uint32_t to, Welcome welcome,
                                      bool encrypts) {
  Handshake made(std::move(secrets), false, encrypts);
  made.welcome_ = std::move(welcome);
  made.greeting_.to = to;
  made.answer_.magic = kAnswers;
  made.answer_.protocol = kProtocol;
  ANYCCL_CHECK(random_bytes(made.answer_.nonce));
  made.in_.expect(sizeof(Greeting));
  return made;
}

short Handshake::events() const {
  if (phase_ == Phase::encrypt) return stream_->events();
  return out_.empty() ? POLLIN : POLLOUT;
}

Status Handshake::advance(int fd) {
  while (!done()) {
    ANYCCL_CHECK(out_.flush(fd));
    if (!out_.empty()) return {};
    if (phase_ == Phase::finish) ANYCCL_CHECK(finish_or_encrypt());
    if (done()) return {};
    if (phase_ == Phase::encrypt) return encrypt(fd);
    if (phase_ == Phase::refuse) return why_refused_;
    if (phase_ == Phase::proved) return {};
    ANYCCL_CHECK(in_.fill(fd));
    if (!in_.full()) return check_beginning();
    ANYCCL_CHECK(on_message());
  }
  return {};
}

/// Both ends have proved that they know the secret.
Status Handshake::finish_or_encrypt() {
  if (!encrypts_) {
    phase_ = Phase::done;
    return {};
  }
  ANYCCL_TRY(const Mac key, hmac(session_, "tls 1.3", {}));
  ANYCCL_TRY(stream_, tls::make_stream(connects_ ? tls::Side::client : tls::Side::server, key));
  phase_ = Phase::encrypt;
  return {};
}

Status Handshake::encrypt(int fd) {
  ANYCCL_CHECK(stream_->shake_hands(fd));
  if (stream_->is_ready()) phase_ = Phase::done;
  return {};
}

/// A stranger shows at its first bytes, and is not waited for.
Status Handshake::check_beginning() const {
  const Bytes magic = std::as_bytes(std::span(kGreets));
  const Bytes begun = in_.received().first(std::min(in_.received().size(), magic.size()));
  if (phase_ != Phase::greeting || std::equal(begun.begin(), begun.end(), magic.begin())) return {};
  return not_anyccl();
}

Status Handshake::on_message() {
  switch (phase_) {
    case Phase::greeting:
      return on_greeting();
    case Phase::answer:
      return on_answer();
    case Phase::proof:
      return on_proof();
    case Phase::accepted:
      return on_accepted();
    default:
      return error(Code::internal, "a handshake got a message it did not wait for");
  }
}

Status Handshake::on_greeting() {
  const std::uint32_t me = greeting_.to;
  greeting_ = read_as<Greeting>(in_.bytes());
  if (greeting_.magic != kGreets) return not_anyccl();
  if (greeting_.protocol != kProtocol) {
    refuse(bytes_of(answer_),
           error(Code::invalid_argument, "it speaks protocol {}, and this version of anyccl {}",
                 greeting_.protocol, kProtocol));
    return {};
  }
  if (greeting_.to != me) return error(Code::invalid_argument, "it looks for another rank");
  const std::optional<Secret> secret = secrets_.of(greeting_.meeting);
  if (!secret) {
    answer_ = refusal_of(Refusal::no_meeting);
    refuse(bytes_of(answer_),
           error(Code::invalid_argument, "it asks for a meeting that is not here"));
    return {};
  }
  secret_ = *secret;
  ANYCCL_TRY(answer_.proof, prove("acceptor"));
  out_.put(bytes_of(answer_));
  in_.expect(sizeof(Mac));
  phase_ = Phase::proof;
  return {};
}

Status Handshake::on_answer() {
  answer_ = read_as<Answer>(in_.bytes());
  if (answer_.magic != kAnswers)
    return error(Code::invalid_argument, "something that is not anyccl listens there");
  if (answer_.protocol != kProtocol)
    return error(Code::invalid_argument,
                 "another version of anyccl listens there: it speaks protocol {}, this one {}",
                 answer_.protocol, kProtocol);
  if (answer_.refusal != 0) return refused_because(answer_.refusal);
  if (Status s = check_proof("acceptor", answer_.proof); !s.ok()) {
    refuse(other_secret(), std::move(s));
    return {};
  }
  phase_ = Phase::proved;
  return {};
}

Status Handshake::send_proof() {
  ANYCCL_TRY(const Mac proof, prove("connector"));
  out_.put(bytes_of(proof));
  in_.expect(sizeof(Mac));
  phase_ = Phase::accepted;
  return {};
}

Status Handshake::on_proof() {
  if (Status s = check_proof("connector", read_as<Mac>(in_.bytes())); !s.ok()) {
    met_another_secret_ = s.code() == Code::invalid_argument;
    return s;
  }
  if (welcome_ && !welcome_(from()))
    return error(Code::remote_error, "rank {} is not waited for here", from());
  ANYCCL_TRY(const Mac accepted, prove("accepted"));
  ANYCCL_TRY(session_, prove("session"));
  out_.put(bytes_of(accepted));
  phase_ = Phase::finish;
  return {};
}

Status Handshake::on_accepted() {
  ANYCCL_CHECK(check_proof("accepted", read_as<Mac>(in_.bytes())));
  ANYCCL_TRY(session_, prove("session"));
  phase_ = Phase::finish;
  return {};
}

void Handshake::refuse(Bytes message, Status why) {
  out_.put(message);
  phase_ = Phase::refuse;
  why_refused_ = std::move(why);
}

Result<Mac> Handshake::prove(std::string_view label) const {
  return hmac(secret_.bytes(), label, {bytes_of(greeting_), answer_.nonce});
}

Status Handshake::check_proof(std::string_view label, const Mac& claimed) const {
  ANYCCL_TRY(const Mac expected, prove(label));
  if (same_mac(expected, claimed)) return {};
  return error(Code::invalid_argument,
               "it knows another secret: it belongs to another job, or the id or "
               "ANYCCL_SECRET differs");
}

}  // namespace anyccl::bootstrap
