#pragma once
// A link is the connection between two ranks: one authenticated stream socket, which carries frames
// (frame.hpp). All communicators that descend from the one that made it share it. Transports reach
// it through the channels of their communicators (channel.hpp).

#include <poll.h>

#include <atomic>
#include <memory>
#include <mutex>

#include "base/private_fd.hpp"
#include "base/secure_stream.hpp"
#include "platform/link/connector.hpp"
#include "platform/link/outbox.hpp"
#include "platform/link/peer_process.hpp"
#include "platform/link/reader.hpp"
#include "platform/link/resend.hpp"
#include "platform/link/socket_kind.hpp"

namespace anyccl::link {

class Channel;

/// What a transport keeps for a link, whatever the communicator.
struct Companion {
  Companion() = default;
  Companion(const Companion&) = delete;
  Companion& operator=(const Companion&) = delete;
  virtual ~Companion() = default;
};

/// What the frames of a link go through.
struct LinkSettings {
  bool checksums = false;  ///< ANYCCL_CHECKSUM, the same at both ends.
  ChaosPlan chaos;         ///< ANYCCL_CHAOS, with a seed of this end.
  bool encrypts = false;   ///< ANYCCL_TLS: without a SecureStream there is no connection.
  /// ANYCCL_RECONNECT, the same at both ends: a connection that is lost is replaced by its
  /// connector.
  bool reconnects = false;
};

/// Each communicator has a context of its own on a link, with its own credits, so that none waits
/// for another; see Channel. A link may wait for its connection until its first use.
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
class Link : public std::enable_shared_from_this<Link>, private Reconnects {
 public:
  /// Errors: those of `kind`, and system_error.
  static Result<std::shared_ptr<Link>> make(UniqueFd socket, std::shared_ptr<const SocketKind> kind,
                                            const LinkSettings& settings = {},
                                            std::unique_ptr<SecureStream> secure = nullptr);
  /// A link to a member of a group that `connector` attaches when it is used, from either side.
  Link(std::shared_ptr<const SocketKind> kind, std::shared_ptr<Connector> connector, Rank member,
       const LinkSettings& settings = {});

  // --- on demand --------------------------------------------------------------------------------
  /// Null if the link was connected when it was made.
  const std::shared_ptr<Connector>& connector() const { return connector_; }
  bool is_attached() const { return attached_.load(std::memory_order_acquire); }
  /// Whether there has been a connection.
  bool was_attached() const { return was_attached_.load(std::memory_order_acquire); }
  /// Asks for the connection.
  void use();
  /// Gives the link a connection, and sends what waits. The connector calls it once, or with
  /// LinkSettings::reconnects whenever a connection takes the place of the one before. Errors:
  /// those of make().
  Status attach(UniqueFd socket, std::unique_ptr<SecureStream> secure = nullptr);
  /// After attach(): whether something is to be exchanged before both ends have what was under way
  /// on a connection that is lost; what to poll for.
  bool is_resuming(pollfd& entry);
  /// Goes on with that: reads what has arrived, and sends what is queued.
  void take_in();
  /// The connector says that there will be no connection; does nothing if there is one. Contexts
  /// note `why`, but not if it is remote_error, as the member is gone, or there was a connection.
  void give_up(const Status& why);
  /// Ends the context of a communicator that has no channel here, by its last frame.
  void end_unopened(FrameHeader last, const std::byte* payload);

  // --- communicators ----------------------------------------------------------------------------
  /// This rank's end of a communicator. `context` lives as long as the channel.
  /// Errors: internal, if the link has a context of this key; remote_error, if it has ended, except
  /// on demand, or if the peer has spoken of the context before: then the channel gives what that
  /// said, and shows that it is gone.
  Result<std::unique_ptr<Channel>> open(std::shared_ptr<Context> context, Rank peer);

  /// As long as the result lives, the end of a communicator does not end the stream: another one is
  /// being created and is about to open its context.
  std::shared_ptr<void> claim();
  /// Whether the other end may still be used: there is a connection, and neither side has closed
  /// it. False in a forked child.
  bool is_alive();
  /// Whether one of the two has spoken of this context. Takes in what has arrived.
  bool has_context(ContextKey key);

  const std::shared_ptr<const SocketKind>& kind() const { return kind_; }
  /// What goes over it is encrypted, and nothing else can.
  bool is_encrypted() const { return encrypts_; }
  std::string name() const {
    return encrypts_ ? kind_->name(fd_.get()) + " with TLS 1.3" : kind_->name(fd_.get());
  }
  int fd() const { return fd_.get(); }
  /// The process at the other end of a unix socket; opened once. Errors: system_error.
  Result<std::shared_ptr<const PeerProcess>> open_process();
  /// Made by the first call, and the same until the link ends. One type for each kind of link.
  template <typename T>
  T& companion() {
    const std::lock_guard lock(companion_mutex_);
    if (companion_ == nullptr) companion_ = std::make_unique<T>();
    return static_cast<T&>(*companion_);
  }

 private:
  friend class Channel;

  bool lose(int problem) override;
  bool resume(std::uint64_t received) override { return out_.resume(received); }
  void acknowledge() override;
  void detach();
  /// Looks whether the peer's host answers. If not, the link ends, or only this connection where
  /// the connector can replace it.
  void look_for_silence();
  /// Ends the stream if no context and no claim uses it, else when the last claim ends, if no
  /// context uses it then. Does nothing to a link on demand.
  void close_unless_used();
  bool has_users() const { return use_.claims > 0 || in_.count_users() > 0; }
  bool is_silent() const;

  PrivateFd fd_;
  const std::shared_ptr<const SocketKind> kind_;
  const std::uint64_t generation_;
  const std::shared_ptr<Connector> connector_;
  const Rank member_{};  // In the connector's group.
  std::atomic<bool> attached_{false}, was_attached_{false};
  bool used_ = false, owes_ = false;  // Asked for; something must not get lost. With the lock.
  struct {
    int claims = 0;
    bool ends = false;  // When nobody uses it any more.
  } use_;               // With the lock.
  struct {
    bool silent = false;  // What SocketKind::is_silent() has said.
    Status why;           // There is no connection, if that is told here.
    int by = 0;           // The errno that ended the last connection.
  } loss_;                // With the lock.
  std::mutex mutex_;      // Held while the socket is read or written, which never waits.
  const bool checksums_, encrypts_;
  const std::unique_ptr<Chaos> chaos_;    // Null if there are no faults.
  const std::unique_ptr<Resend> resend_;  // Null if a lost connection ends the link.
  std::unique_ptr<SecureStream> secure_;  // Null if not encrypted, or not attached.
  Outbox out_;
  Reader in_;
  std::mutex process_mutex_;
  std::shared_ptr<const PeerProcess> process_;
  std::mutex companion_mutex_;
  std::unique_ptr<Companion> companion_;
};

}  // namespace anyccl::link
