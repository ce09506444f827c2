#pragma once
// A group of processes that have met becomes a communicator here: joining ranks, splits, growing
// and shrinking end in these functions.

#include "platform/bootstrap/rendezvous/join.hpp"
#include "runtime/links/transports.hpp"
#include "runtime/process/init_context.hpp"
#include "runtime/process/runtime.hpp"

namespace anyccl {

/// Shared by the communicators and links that are made of it.
using GroupPtr = std::shared_ptr<const bootstrap::Group>;

/// Connects the members of `group`, of which this rank is `me`, and makes a communicator of them.
Result<CommPtr> create(InitContext& init, const GroupPtr& group, Rank me);

/// Makes a communicator of them over links that there are: one for each other member, by rank.
/// Adds it to Process, and begins the metrics and dumps that the environment asks for.
Result<CommPtr> create_over(InitContext& init, const GroupPtr& group, Rank me,
                            const std::vector<PeerLink>& links,
                            std::size_t most_ring_bytes = kAnyRing);

/// The key of their contexts: the same on all members of a group, and another for each group and
/// use.
Result<link::ContextKey> context_key_of(const bootstrap::Secret& secret, std::string_view use);

/// What communicators that are made of another one get from it.
struct Inheritance {
  bootstrap::Secret secret;                                      ///< That only its members know.
  std::shared_ptr<const std::vector<bootstrap::Hello>> members;  ///< By rank.
  std::vector<PeerLink> links;                                   ///< To all others, by rank.
  std::string transport;                                         ///< That ANYCCL_TRANSPORT named.
};
/// What `comm`, whose handle the caller keeps alive, passes on to others.
Inheritance inheritance_of(const Comm& comm);

}  // namespace anyccl
