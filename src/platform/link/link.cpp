#include "platform/link/link.hpp"

#include <fcntl.h>

#include <cerrno>
#include <utility>

#include "base/error.hpp"
#include "base/fork.hpp"
#include "platform/link/channel.hpp"

namespace anyccl::link {
namespace {

Status make_nonblocking(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags >= 0 && ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) >= 0) return {};
  return system_error(errno, "make the connection to a peer nonblocking");
}

/// What the system says when it has given up sending to a host.
bool is_of_silent_host(int problem) {
  return problem == ETIMEDOUT || problem == EHOSTUNREACH || problem == ENETUNREACH ||
         problem == EHOSTDOWN || problem == ENETDOWN;
}

}  // namespace

Result<std::shared_ptr<Link>> Link::make(UniqueFd socket, std::shared_ptr<const SocketKind> kind,
                                         const LinkSettings& settings,
                                         std::unique_ptr<SecureStream> secure) {
  if (!socket) return error(Code::invalid_argument, "there is no connection to a peer");
  // Not in one piece with the count, which outlives it where others only know of it.
  std::shared_ptr<Link> link(new Link(std::move(kind), nullptr, {}, settings));
  ANYCCL_CHECK(link->attach(std::move(socket), std::move(secure)));
  return link;
}

Link::Link(std::shared_ptr<const SocketKind> kind, std::shared_ptr<Connector> connector,
           Rank member, const LinkSettings& settings)
    : kind_(std::move(kind)),
      generation_(fork_generation()),
      connector_(std::move(connector)),
      member_(member),
      checksums_(settings.checksums),
      encrypts_(settings.encrypts),
      chaos_(settings.chaos.is_empty() ? nullptr : std::make_unique<Chaos>(settings.chaos)),
      resend_(settings.reconnects && connector_ != nullptr
                  ? std::make_unique<Resend>(static_cast<Reconnects&>(*this))
                  : nullptr),
      out_(-1),
      in_(kind_->carries_descriptors()) {
  out_.set_up(checksums_, chaos_.get(), resend_.get());
  in_.set_up(checksums_, chaos_.get(), resend_.get());
}

// --- on demand -----------------------------------------------------------------------------------

void Link::use() {
  if (connector_ == nullptr || is_attached()) return;
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(used_, true) || in_.ended()) return;
  }
  connector_->connect(member_);
}

Status Link::attach(UniqueFd socket, std::unique_ptr<SecureStream> secure) {
  if (encrypts_ != (secure != nullptr))
    return error(Code::internal, "a connection that is encrypted differs from what was agreed");
  ANYCCL_CHECK(make_nonblocking(socket.get()));
  ANYCCL_CHECK(kind_->set_up(socket.get()));
  const std::lock_guard lock(mutex_);
  if (is_attached())
    detach();  // The other end has lost the connection, and this one does not know yet.
  fd_ = PrivateFd(std::move(socket));
  secure_ = std::move(secure);
  if (secure_ != nullptr) secure_->go_through(chaos_.get());
  if (chaos_ != nullptr && was_attached()) chaos_->note_connected();
  attached_.store(true, std::memory_order_release);
  was_attached_.store(true, std::memory_order_release);
  in_.connect(fd_.get(), secure_.get());
  out_.connect(fd_.get(), secure_.get());
  out_.flush();
  in_.tell_all();
  return {};
}

void Link::give_up(const Status& why) {
  const std::lock_guard lock(mutex_);
  // A communicator that waits for a member says itself that it is gone, and in which call.
  if (is_attached()) return;
  loss_.silent |= is_of_silent_host(loss_.by);
  if (why.code() != Code::remote_error && !was_attached()) loss_.why = why;
  in_.give_up(loss_.why);
}

/// A peer that has left all communicators has ended the connection by that. With the lock.
bool Link::lose(int problem) {
  if (resend_ == nullptr || generation_ != fork_generation() || in_.ended() || !is_attached() ||
      out_.is_closed() || in_.count_present() == 0)
    return false;
  loss_.by = problem;
  detach();
  connector_->reconnect(member_, problem);
  return true;
}

/// With the lock.
void Link::detach() {
  attached_.store(false, std::memory_order_release);
  in_.disconnect();
  out_.disconnect();
  secure_ = nullptr;
  fd_ = PrivateFd();
}

void Link::acknowledge() {
  FrameHeader header;
  header.type = kReceived;
  header.credit = resend_->tell();
  out_.send(header, nullptr);
}

bool Link::is_resuming(pollfd& entry) {
  const std::lock_guard lock(mutex_);
  entry = {fd_.get(), static_cast<short>(POLLIN | (out_.idle() ? 0 : POLLOUT)), 0};
  return resend_ != nullptr && is_attached() && !in_.ended() && !out_.idle();
}

void Link::take_in() {
  const std::lock_guard lock(mutex_);
  in_.read(nullptr, nullptr);
  out_.flush();
}

/// Without a connection only the first few are kept: a communicator that makes many others does not
/// pile up what their members would have said.
void Link::end_unopened(FrameHeader last, const std::byte* payload) {
  constexpr std::size_t kMostKept = 4096;  // bytes
  const std::lock_guard lock(mutex_);
  if (generation_ != fork_generation() || in_.ended()) return;
  if (!is_attached() && out_.queued() > kMostKept) return;
  out_.send(last, payload);
  if (!is_attached()) return;
  Flow& flow = in_.own_flow(last.context);
  flow.closed = true;
  if (flow.is_over()) in_.erase(flow.key);
}

// --- communicators -------------------------------------------------------------------------------

Result<std::unique_ptr<Channel>> Link::open(std::shared_ptr<Context> context, Rank peer) {
  const std::lock_guard lock(mutex_);
  const bool has_ended = in_.ended() || out_.is_closed();
  if (has_ended && connector_ == nullptr && !in_.has(context->key))
    return error(Code::remote_error, "the connection to rank {} has ended", index(peer));
  Flow& flow = in_.own_flow(context->key);
  if (flow.context != nullptr || flow.closed)
    return error(Code::internal, "two communicators with the same key {:x} share rank {}",
                 context->key, index(peer));
  auto channel = std::make_unique<Channel>(shared_from_this(), context, flow);
  flow.context = context.get();
  flow.peer = peer;
  context->arrivals.fetch_add(flow.arrivals.size(), std::memory_order_relaxed);
  if (flow.aborted)
    context->note(received_abort(peer, flow.last_words.data(), flow.last_words.size()));
  if (!loss_.why.ok()) context->note(loss_.why);
  return channel;
}

std::shared_ptr<void> Link::claim() {
  const std::lock_guard lock(mutex_);
  ++use_.claims;
  return {this, [link = shared_from_this()](void*) {
            const std::lock_guard released(link->mutex_);
            --link->use_.claims;
            if (link->use_.ends) link->close_unless_used();
          }};
}

/// With the lock.
void Link::close_unless_used() {
  use_.ends = true;
  if (connector_ == nullptr && !has_users()) out_.close();
}

bool Link::is_alive() {
  if (generation_ != fork_generation()) return false;
  const std::lock_guard lock(mutex_);
  in_.read(nullptr, nullptr);
  return is_attached() && !in_.ended() && !out_.broken() && !out_.is_closed();
}

bool Link::has_context(ContextKey key) {
  const std::lock_guard lock(mutex_);
  in_.read(nullptr, nullptr);
  return in_.has(key);
}

/// Looks whether the peer's host answers. If it does not, nothing more is expected of it, even if
/// it comes back: ranks may have heard by then that it is gone. With the lock.
void Link::look_for_silence() {
  if (!is_attached() || in_.ended() || !kind_->is_silent(fd_.get())) return;
  if (lose(ETIMEDOUT)) return;
  loss_.silent = true;
  out_.discard();
  in_.give_up({});
}

/// Whether the host of the peer does not answer, as far as is known. With the lock.
bool Link::is_silent() const {
  return loss_.silent || is_of_silent_host(in_.problem()) || is_of_silent_host(out_.problem());
}

Result<std::shared_ptr<const PeerProcess>> Link::open_process() {
  const std::lock_guard lock(process_mutex_);
  if (process_ == nullptr) {
    ANYCCL_TRY(PeerProcess process, PeerProcess::of(fd_.get()));
    process_ = std::make_shared<const PeerProcess>(std::move(process));
  }
  return process_;
}

}  // namespace anyccl::link
