#pragma once
// A rank joins a group: it says hello, and learns the hellos of all ranks and the group's secret.
// The thread that creates a communicator calls join(), or join_environment(), which calls
// join_at(), and waits until all ranks are there or something is wrong. frame.hpp describes the
// messages.

#include <vector>

#include "base/deadline.hpp"
#include "platform/bootstrap/group/hello.hpp"
#include "platform/bootstrap/rendezvous/source.hpp"
#include "platform/bootstrap/rendezvous/unique_id.hpp"

namespace anyccl::bootstrap {

/// Everyone in a group, and a secret that only they know.
struct Group {
  std::vector<Hello> members;  ///< By rank.
  Secret secret;  ///< Another one for every group, even from one unique id or environment.
};

/// Joins the group that `id` leads to, as the rank in `mine`, and waits until all ranks have
/// joined.
///
/// In a large group (see RelayTree) the ranks of a host meet first, and one of them, the leader,
/// speaks for them. A leader tells the others the answer, and leaders of other hosts, which call at
/// `listeners`, and returns when it has. `listeners` is what `mine` was made from; null: it tells
/// no leaders.
///
/// `is_here`: the id was made in this process, so that a listener that is closed never comes back.
///
/// Threads: any; all ranks may be threads of one process.
/// Errors: timeout, saying which ranks are missing or why the root server could not be reached;
///         invalid_usage when the ranks do not fit together (a rank twice, other sizes, settings or
///         versions); invalid_argument for another secret or something else at the address;
///         remote_error when a rank or the root server goes; aborted when it was stopped;
///         system_error.
Result<Group> join(const UniqueId& id, const Hello& mine, Deadline deadline,
                   const Listeners* listeners = nullptr, bool is_here = false);

/// Joins as join() does, at the root server of `rendezvous` rather than at that of a unique id.
Result<Group> join_at(const RendezvousAddress& rendezvous, const Hello& mine, Deadline deadline,
                      const Listeners* listeners = nullptr);

}  // namespace anyccl::bootstrap
