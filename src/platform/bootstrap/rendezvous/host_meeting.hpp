#pragma once
// The ranks of a host that join a large group meet before they go to the root server: one of them
// becomes the leader and speaks for the others. Each rank calls meet_on_host() in the thread that
// joins, and waits in it. The others connect to a unix socket of the leader, and only a handshake
// (auth/handshake.hpp) is on the wire here.

#include <optional>

#include "platform/bootstrap/rendezvous/source.hpp"

namespace anyccl::bootstrap {

/// The part of a rank of a large group on its host (as same_host() tells hosts apart).
struct HostPlace {
  /// It leads its host, and the other ranks call here. None, and no leader: it leads nobody but
  /// itself.
  UniqueFd listener;
  /// The leader of its host.
  std::optional<Connection> leader;
};

/// Meets the ranks of this host that join the same group: the first one listens at an abstract unix
/// socket, whose name only processes that know the secret can compute, and the others connect to
/// it, if it proves within a moment that it knows the secret, too (with Trust::same_user, that it
/// is of this user). A rank that meets another process there, or has no descriptors for this, is a
/// leader without others. Errors: system_error.
Result<HostPlace> meet_on_host(const RendezvousAddress& rendezvous, const Hello& mine,
                               Deadline deadline);

/// Whether the process that listens there lets nobody in within a moment: it is stopped, or hangs.
/// `mine` asks. A leader that runs does not notice. Errors: system_error.
Result<bool> has_silent_leader(const RendezvousAddress& rendezvous, const Hello& mine,
                               Deadline deadline);

/// The name of that socket. All ranks of a host that meet at one place get the same one.
Result<std::string> name_of_meeting(const RendezvousAddress& rendezvous, const Hello& mine);

}  // namespace anyccl::bootstrap
