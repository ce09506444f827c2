#include "platform/fabric/link.hpp"

#include <fcntl.h>

#include "base/error.hpp"
#include "base/fork.hpp"
#include "platform/fabric/channel.hpp"

namespace anyccl::fabric {
namespace {

Status make_nonblocking(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags >= 0 && ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) >= 0) return {};
  return system_error(errno, "make the connection to a peer nonblocking");
}

}  // namespace

Result<std::shared_ptr<Link>> Link::make(UniqueFd socket, std::shared_ptr<const SocketKind> kind) {
  if (!socket) return error(Code::invalid_argument, "there is no connection to a peer");
  ANYCCL_CHECK(make_nonblocking(socket.get()));
  ANYCCL_CHECK(kind->set_up(socket.get()));
  // Not in one piece with the count, which outlives it where others only know of it.
  return std::shared_ptr<Link>(new Link(std::move(socket), std::move(kind)));
}

Link::Link(UniqueFd socket, std::shared_ptr<const SocketKind> kind)
    : fd_(std::move(socket)),
      kind_(std::move(kind)),
      generation_(fork_generation()),
      out_(fd_.get()),
      in_(fd_.get(), kind_->carries_descriptors()) {}

Result<std::unique_ptr<Channel>> Link::open(std::shared_ptr<Context> context, Rank peer) {
  const std::lock_guard lock(mutex_);
  if (in_.ended() || out_.is_closed())
    return error(Code::remote_error, "the connection to rank {} has ended", index(peer));
  Flow* const flow = in_.flow_of(context->key);
  if (flow == nullptr || flow->context != nullptr || flow->closed)
    return error(Code::internal, "two communicators with the same key {:x} share rank {}",
                 context->key, index(peer));
  auto channel = std::make_unique<Channel>(shared_from_this(), context, *flow);
  flow->context = context.get();
  flow->peer = peer;
  context->arrivals.fetch_add(flow->arrivals.size(), std::memory_order_relaxed);
  if (flow->aborted)
    context->note(received_abort(peer, flow->last_words.data(), flow->last_words.size()));
  return channel;
}

bool Link::is_alive() {
  if (generation_ != fork_generation()) return false;
  const std::lock_guard lock(mutex_);
  in_.read(nullptr, nullptr);
  return !in_.ended() && !out_.broken() && !out_.is_closed();
}

bool Link::has_context(ContextKey key) {
  const std::lock_guard lock(mutex_);
  in_.read(nullptr, nullptr);
  return in_.has(key);
}

Result<std::shared_ptr<const PeerProcess>> Link::process() {
  const std::lock_guard lock(process_mutex_);
  if (process_ == nullptr) {
    ANYCCL_TRY(PeerProcess process, PeerProcess::of(fd_.get()));
    process_ = std::make_shared<const PeerProcess>(std::move(process));
  }
  return process_;
}

}  // namespace anyccl::fabric
