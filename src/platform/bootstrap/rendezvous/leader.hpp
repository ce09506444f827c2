#pragma once
// The leader of a host joins a large group for itself and for the ranks that wait at it. join_at()
// calls lead() in the thread that joins. That thread polls an Uplink, which leads to the root
// server, and a Relay, which serves the waiting ranks.

#include "platform/bootstrap/rendezvous/receiver.hpp"
#include "platform/bootstrap/rendezvous/source.hpp"
#include "platform/bootstrap/rendezvous/uplink.hpp"
#include "platform/bootstrap/socket/listeners.hpp"

namespace anyccl::bootstrap {

/// Joins a large group as the rank in `mine`, and for the ranks that call at `host` (none: no rank
/// does): brings the root server their hellos, and them the answer. So it does for the leaders of
/// other hosts that the server sends to `listeners` (null: none). Returns when all of them have the
/// answer, a failure included, or after a moment. Errors: as join(); the waiting ranks hear of it,
/// too.
Result<FinalReply> lead(const RendezvousAddress& rendezvous, const Attendance& attendance,
                        const Listeners* listeners, UniqueFd host);

}  // namespace anyccl::bootstrap
