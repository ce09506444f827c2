#pragma once

#include <memory>
#include <mutex>

#include "base/private_fd.hpp"
#include "platform/fabric/outbox.hpp"
#include "platform/fabric/peer_process.hpp"
#include "platform/fabric/reader.hpp"
#include "platform/fabric/socket_kind.hpp"

namespace anyccl::fabric {

class Channel;

/// The connection between two ranks: one authenticated stream socket, which all communicators that
/// descend from the one that made it share. Each has a context of its own on it, with its own
/// credits, so that none waits for another; see Channel.
///
/// A link lives as long as a channel of it or a communicator that may make one.
///
/// Why this cannot deadlock. A sender waits only while a peer's socket is full, so while that peer
/// does not read, or while the window of its context is full. But a rank that waits does read, all
/// contexts of its links, and never stops for lack of room: windows bound what it keeps. A window
/// that is full holds back only frames that nobody asks for yet: see Window. So bytes flow as if
/// there was room for all, and plans are free of deadlock even if nothing is buffered.
///
/// Threads: any.
class Link : public std::enable_shared_from_this<Link> {
 public:
  /// Errors: those of `kind`, and system_error.
  static Result<std::shared_ptr<Link>> make(UniqueFd socket,
                                            std::shared_ptr<const SocketKind> kind);
  Link(UniqueFd socket, std::shared_ptr<const SocketKind> kind);

  /// This rank's end of a communicator. `context` lives as long as the channel.
  /// Errors: internal, if the link has a context of this key.
  Result<std::unique_ptr<Channel>> open(std::shared_ptr<Context> context, Rank peer);

  /// Whether the other end may still be used: neither side has closed it. Nothing in a forked child.
  bool is_alive();
  /// Whether one of the two has spoken of this context. Takes in what has arrived.
  bool has_context(ContextKey key);

  const SocketKind& kind() const { return *kind_; }
  std::string name() const { return kind_->name(fd_.get()); }
  int fd() const { return fd_.get(); }
  /// The process at the other end of a unix socket; opened once. Errors: system_error.
  Result<std::shared_ptr<const PeerProcess>> process();

 private:
  friend class Channel;

  const PrivateFd fd_;
  const std::shared_ptr<const SocketKind> kind_;
  const std::uint64_t generation_;
  std::mutex mutex_;  // Held while the socket is read or written, which never waits.
  Outbox out_;
  Reader in_;
  std::mutex process_mutex_;
  std::shared_ptr<const PeerProcess> process_;
};

}  // namespace anyccl::fabric
